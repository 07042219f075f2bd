"""Kernels whose imports are already done, for the JupyterLab of the tests: see `forked_kernel.py` of the audit.

A module of its own, because the server imports it by name.
"""

from typing import Any

from jupyter_server.services.kernels.kernelmanager import ServerKernelManager

from autograder.lessons.audit.forked_kernel import WarmProvisioner


class ForkedKernelManager(ServerKernelManager):
    """JupyterLab's own kernel manager, with a fork instead of a start."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.provisioner = WarmProvisioner(kernel_id="", kernel_spec=self.kernel_spec, parent=self)
