// What waits behind a cell that fails. JupyterLite drops it without an answer: such cells keep their [*], and a cell that
// is meant to fail (its tag raises-exception) ends Run All. JupyterLab asks kernels for something else, and they obey: a
// cell that is dropped gets an answer, and after an error that is meant, all go on.

const waiting = setInterval(() => {
  const client = window.jupyterapp?.serviceManager?.kernels?._kernelAPIClient;
  if (!client) return;
  clearInterval(waiting);
  const reasons = client._cancelReason; // why the queue of a kernel is about to be emptied
  const set = reasons.set.bind(reasons);
  reasons.set = (queue, why) => {
    const [id] = [...client._mutexMap.keys()].filter((name) => client._mutexMap.get(name) === queue);
    if (why === "error" && client._kernels.get(id)?.parent?.content.stop_on_error === false) {
      queue.cancel = () => delete queue.cancel; // once
      return reasons;
    }
    return set(queue, why === "error" ? "interrupt-subsequent" : why); // the reason for which JupyterLite answers
  };
}, 50);
