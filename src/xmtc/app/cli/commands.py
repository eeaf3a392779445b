"""All commands; usage errors print one line. Heavy imports happen inside the commands, so that --help stays fast."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Annotated, Any

import typer

from xmtc import __version__
from xmtc.app.cli import (
    calibrate,
    data,
    demo,
    doctor,
    ensemble,
    evaluate,
    explain,
    export,
    inspect,
    predict,
    recipes,
    serve,
    sharing,
    train,
    tune,
    update,
    warmup,
)
from xmtc.app.cli.listings import ListingCommand
from xmtc.core.errors import ConfigError, nearest

_COMPLETE = "_XMTC_COMPLETE"  # set by the shell code of `xmtc --install-completion`
_UsageError: Any = typer.BadParameter.__base__  # it has no public name in typer

app = typer.Typer(
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Tag texts with the most relevant few of thousands to millions of labels.",
    epilog="Start with: xmtc demo",
)
_Commands = tuple[tuple[str, Callable[..., None], str], ...]  # name, function, end of its help: example and notes
_COMMANDS: _Commands = (
    ("demo", demo.demo, "xmtc demo"),
    ("train", train.train, "xmtc train data/ --method linear --out model/\n\nRecipes:\n\n{recipes}"),
    ("tune", tune.tune, "xmtc tune data/ --method linear --trials 20 --out tuned.toml"),
    ("predict", predict.predict, 'xmtc predict model/ "Council regulation on sugar imports" -k 3'),
    ("evaluate", evaluate.evaluate, "xmtc evaluate model/ data/ --split test"),
    ("compare", evaluate.compare, "xmtc compare old/ new/ --data data/"),
    ("ensemble", ensemble.ensemble, "xmtc ensemble a/ b/ c/ --out all/ --rule rank"),
    ("calibrate", calibrate.calibrate, "xmtc calibrate model/ data/"),
    ("update", update.update, "xmtc update model/ data/ --out newer/ --retire butter"),
    ("explain", explain.explain, 'xmtc explain model/ "Council regulation on sugar imports" --label sugar'),
    ("export", export.export, "xmtc export model/ --to onnx --int8 --out served/"),
    ("inspect", inspect.inspect, "xmtc inspect data/"),
    ("recipes", recipes.recipes, "xmtc recipes"),
    ("serve", serve.serve, "xmtc serve model/ --port 8000"),
    ("push", sharing.push, "xmtc push model/ hf:owner/name --scores scores.json --licence apache-2.0"),
    ("pull", sharing.pull, "xmtc pull hf:owner/name --out model/"),
    ("warmup", warmup.warmup, "xmtc warmup"),
    ("doctor", doctor.doctor, "xmtc doctor"),
)
_DATA_COMMANDS: _Commands = (
    ("pydocs", data.pydocs, "xmtc data pydocs --out pydocs/"),
    ("synthetic", data.synthetic, "xmtc data synthetic --out big/ --documents 100000 --labels 20000 --seed 1"),
    ("convert", data.convert, "xmtc data convert Eurlex-4K/ --out eurlex/ --to native"),
)
for _name, _function, _example in _COMMANDS:
    app.command(_name, cls=ListingCommand, epilog=f"Example: {_example}")(_function)
_data = typer.Typer(help="Make and convert data sets.", epilog="Example: xmtc data pydocs --out pydocs/")
for _name, _function, _example in _DATA_COMMANDS:
    _data.command(_name, cls=ListingCommand, epilog=f"Example: {_example}")(_function)
app.add_typer(_data, name="data")


def run(arguments: list[str]) -> None:
    """Run one command; raise ConfigError, with the nearest known name, for a usage error."""
    command = typer.main.get_command(app)
    if _COMPLETE in os.environ:  # the shell asks for completions; typer prints them and exits
        command(arguments, prog_name="xmtc", complete_var=_COMPLETE)
    try:
        with command.make_context("xmtc", arguments or ["--help"]) as context:
            command.invoke(context)
    except typer.Exit:  # raised after --help and --version
        return
    except _UsageError as error:
        raise ConfigError(_usage_mistake(error)) from None


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"xmtc {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def _usage_mistake(error: Any) -> str:
    """Return what is wrong with the arguments, the nearest known name, and where to find help."""
    context = error.ctx
    path = context.command_path if context else "xmtc"
    message = error.format_message().replace("Value error, ", "").rstrip(".")
    known = getattr(context.command, "commands", {}) if context else {}
    if option := getattr(error, "option_name", None) if hasattr(error, "possibilities") else None:
        options = [name for parameter in context.command.params for name in parameter.opts] if context else []
        message = f"no such option {option}.{nearest(option, [*options, '--help'])}"
    elif known and message.startswith("No such command"):
        name = message.split("'")[1]
        message = f"no such command {name!r}.{nearest(name, known) or ' Known: ' + ', '.join(known) + '.'}"
    elif known:
        message = f"missing command after {path!r}: one of {', '.join(known)}"
    else:
        message = message[:1].lower() + message[1:]
    return f"{message.rstrip('.')}; see {path} --help" if "Did you mean" not in message else message
