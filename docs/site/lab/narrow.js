// In a narrow window the list of files would leave little room for the notebook: it closes once it has shown where the
// notebook is. A click on the folder at the left edge opens it.

if (window.innerWidth < 900) {
  const asking = setInterval(() => {
    if (!window.jupyterapp) return;
    clearInterval(asking);
    const { commands, shell } = window.jupyterapp;
    const close = (_, { id, result }) => {
      if (id !== "docmanager:show-in-file-browser") return;
      commands.commandExecuted.disconnect(close);
      result.finally(() => shell.collapseLeft());
    };
    commands.commandExecuted.connect(close);
  }, 50);
}
