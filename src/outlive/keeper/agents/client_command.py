"""The command line with which an agent's attempt starts its client."""

from __future__ import annotations

from errno import ENOENT

from outlive.agents.find_adapter import adapter_of, without_session_variables
from outlive.bundle.agent_files import prompt_file, read_start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.keeper.plan import Plan


def start_of(plan: Plan) -> tuple[tuple[str, ...], dict[str, str], str]:
    """Return the client's command line, its environment, and its prompt file's path.

    Raises OSError if the files of the attempt are gone.
    """
    request, start = plan.launch.agent, read_start(plan.files)
    if request is None or start is None:
        raise OSError(ENOENT, "the client and the model of this attempt are not recorded", plan.files.path)
    path = prompt_file(plan.files)
    with open(path, "rb") as file:
        prompt = file.read().decode("utf-8", "surrogateescape")
    environ = without_session_variables(plan.surroundings.environ)
    line = adapter_of(request, start.client).command(request, start, prompt, environ)
    return line.argv, {**environ, **line.environ}, path
