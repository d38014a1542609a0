"""The settings of the command line. Its only module that reads the environment.

    AGENTCORE_MODEL, AGENTCORE_BASE_URL, AGENTCORE_API_KEY    like --model and --base-url; the key has no flag,
                                                              because other people can read a command's arguments
    AGENTCORE_CONFIRM                                         like --confirm
    AGENTCORE_HOME                                            the folder with the conversations, like --home
    ANTHROPIC_API_KEY, OPENAI_API_KEY ...                     each provider's own variable, read where the provider is called
    VISUAL, EDITOR                                            the editor for arguments

A flag wins over the environment.
"""

from __future__ import annotations

import os
import pwd
import shlex
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, cast, get_args

from platformdirs import user_config_path, user_state_path
from pydantic import SecretStr

from agentcore.cli.failures import UsageError

Confirm = Literal["never", "always", "risky"]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The result of flags and environment."""

    home: str
    """The folder with all data."""
    is_store: bool = False
    """True if the home is the folder of a program's `FileStore`."""
    home_flag: str | None = None
    """The folder as the flag named it: suggested commands have to name it too."""
    program: str = "agentcore"
    """The shell command that starts this program."""
    model: str | None = None
    base_url: str | None = None
    api_key: SecretStr | None = None
    confirm: Confirm | None = None
    config: str = field(default_factory=lambda: str(user_config_path("agentcore", appauthor=False)))
    """The folder for the user's configuration, which may not be there."""
    editor: str | None = None
    person: str | None = None
    """The login name, recorded with approvals and rejections."""
    keys: frozenset[str] = field(default=frozenset(), repr=False)
    """The names of the set variables that look like providers' keys."""

    @property
    def conversations(self) -> str:
        """The folder of the conversations."""
        return self.home if self.is_store else os.path.join(self.home, "conversations")

    def command(self, arguments: str) -> str:
        """Return the shell command with these arguments and the same folder."""
        place = "" if self.home_flag is None else f" --home {shlex.quote(self.home_flag)}"
        return f"{self.program} {arguments}{place}"


def read_settings(
    *,
    home: str | None = None,
    model: str | None = None,
    base_url: str | None = None,
    confirm: Confirm | None = None,
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """Combine flags and environment.

    Raises:
        UsageError: A variable has an invalid value.
    """
    # An empty variable counts as not set.
    variables = {name: value for name, value in (environment or os.environ).items() if value}
    key = variables.get("AGENTCORE_API_KEY")
    folder = os.path.abspath(os.path.expanduser(home or variables.get("AGENTCORE_HOME") or _state_folder()))
    return Settings(
        home=folder,
        is_store=_is_store(folder),
        home_flag=home,
        program=_program(variables.get("PATH")),
        model=model or variables.get("AGENTCORE_MODEL"),
        base_url=base_url or variables.get("AGENTCORE_BASE_URL"),
        api_key=None if key is None else SecretStr(key),
        confirm=confirm or _confirm(variables.get("AGENTCORE_CONFIRM")),
        editor=variables.get("VISUAL") or variables.get("EDITOR"),
        person=_login(),
        keys=frozenset(name for name in variables if name.endswith(("_KEY", "_KEY_ID", "_TOKEN", "_CREDENTIALS"))),
    )


def check_writable(settings: Settings) -> Settings:
    """Return the settings if conversations can be written in their folder.

    Raises:
        UsageError: They cannot.
    """
    place = settings.conversations
    while not os.path.lexists(place) and place != os.path.dirname(place):
        place = os.path.dirname(place)
    if not os.path.isdir(place):
        problem = "is not a folder"
    elif not os.access(place, os.W_OK | os.X_OK):
        problem = "is not writable"
    else:
        return settings
    raise UsageError(
        f"Cannot keep conversations in {settings.conversations!r}: {place!r} {problem}. "
        "Choose another folder with --home or AGENTCORE_HOME."
    )


def unset_variables(names: Iterable[str]) -> list[str]:
    """Return those of these variables that are not set."""
    return [name for name in names if not os.environ.get(name)]


def _is_store(folder: str) -> bool:
    """Return whether conversations are in the folder itself, and not in `conversations` inside."""
    inside = os.path.join(folder, "conversations")
    if os.path.isdir(inside) and not _is_conversation(inside):
        return False
    try:
        with os.scandir(folder) as entries:
            return any(_is_conversation(entry.path) for entry in entries)
    except OSError:
        return False


def _is_conversation(folder: str) -> bool:
    return os.path.isfile(os.path.join(folder, "meta.json"))


def _program(path: str | None) -> str:
    """Return the shortest shell command that starts this very program again."""
    started = sys.argv[0]
    name = os.path.basename(started)
    if name == "__main__.py" and os.path.basename(os.path.dirname(started)) == "agentcore":
        script = os.path.join(os.path.dirname(sys.executable), "agentcore")
        in_full = f"{shlex.quote(sys.orig_argv[0])} -m agentcore"
    elif name == "agentcore" and "/" in started:
        script, in_full = started, shlex.quote(started)
    else:
        return "agentcore"
    found = shutil.which("agentcore", path=path)
    return "agentcore" if found is not None and os.path.realpath(found) == os.path.realpath(script) else in_full


def _state_folder() -> str:
    return str(user_state_path("agentcore", appauthor=False))


def _confirm(value: str | None) -> Confirm | None:
    if value is not None and value not in get_args(Confirm):
        raise UsageError(f"AGENTCORE_CONFIRM is {value!r}. Set it to {', '.join(get_args(Confirm))}, or unset it.")
    return cast("Confirm | None", value)


def _login() -> str | None:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container may run as a user that has no name
        return None
