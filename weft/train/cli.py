"""`LightningCLI`: modules and trainers from the command line and files of configuration.

It needs jsonargparse: `pip install "weft[cli]"`.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, cast

from weft.errors import ArgumentError
from weft.optim import lr_scheduler
from weft.optim.lr_scheduler import LRScheduler
from weft.optim.optimizer import Optimizer
from weft.train.callbacks.callback import Callback
from weft.train.datamodule import DataModule
from weft.train.module import Module
from weft.train.seeds import seed_everything
from weft.train.trainer import Trainer

try:
    import jsonargparse as _jsonargparse  # pyright: ignore[reportMissingImports]
except ImportError:
    _jsonargparse = None

_Parser: Any = object if _jsonargparse is None else _jsonargparse.ArgumentParser
ArgsType = Any
OptimizerCallable = Callable[[Iterable[Any]], Optimizer]
LRSchedulerCallable = Callable[[Optimizer], Any]
LRSchedulerTypeTuple = (LRScheduler, lr_scheduler.ReduceLROnPlateau)
LRSchedulerTypeUnion = LRScheduler | lr_scheduler.ReduceLROnPlateau
SUBCOMMANDS: Final = {
    "fit": {"model", "train_dataloaders", "val_dataloaders", "datamodule"},
    "validate": {"model", "dataloaders", "datamodule"},
    "test": {"model", "dataloaders", "datamodule"},
    "predict": {"model", "dataloaders", "datamodule"},
}
"""The trainer's methods, with those of their arguments that the command line does not give."""


class ReduceLROnPlateau(lr_scheduler.ReduceLROnPlateau):
    """The scheduler with the metric that it monitors as an argument."""

    def __init__(self, optimizer: Optimizer, monitor: str, *args: Any, **kwargs: Any) -> None:
        super().__init__(optimizer, *args, **kwargs)
        self.monitor = monitor


class LightningArgumentParser(_Parser):
    """jsonargparse's parser, with groups of arguments for the parts of a run."""

    def __init__(
        self, *args: Any, description: str = "Trains, validates, tests and predicts",
        env_prefix: str = "PL", default_env: bool = False, **kwargs: Any,
    ) -> None:  # fmt: skip
        if _jsonargparse is None:
            raise ArgumentError.here(
                'LightningCLI: expected jsonargparse, got none; install: pip install "weft[cli]"'
            )
        super().__init__(
            *args, description=description, env_prefix=env_prefix, default_env=default_env, **kwargs
        )
        self.callback_keys: list[str] = []
        self.automatic: dict[str, tuple[str, str]] = {}

    def add_lightning_class_args(
        self, lightning_class: Any, nested_key: str, subclass_mode: bool = False,
        required: bool = True,
    ) -> list[str]:  # fmt: skip
        """Add the arguments of a trainer, a module, a data module or a callback."""
        if inspect.isclass(lightning_class) and issubclass(lightning_class, Callback):
            self.callback_keys.append(nested_key)
        if subclass_mode:
            return self.add_subclass_arguments(
                lightning_class, nested_key, fail_untyped=False, required=required
            )
        if inspect.isclass(lightning_class):
            return self.add_class_arguments(
                lightning_class, nested_key, fail_untyped=False,
                instantiate=not issubclass(lightning_class, Trainer), sub_configs=True,
            )  # fmt: skip
        return self.add_function_arguments(
            lightning_class, nested_key, fail_untyped=False, sub_configs=True
        )

    def add_optimizer_args(
        self, optimizer_class: Any = Optimizer, nested_key: str = "optimizer",
        link_to: str = "AUTOMATIC",
    ) -> None:  # fmt: skip
        """Add the arguments of an optimizer, or of any of several classes."""
        self._add(optimizer_class, nested_key, link_to, "optimizer", "params")

    def add_lr_scheduler_args(
        self, lr_scheduler_class: Any = LRScheduler, nested_key: str = "lr_scheduler",
        link_to: str = "AUTOMATIC",
    ) -> None:  # fmt: skip
        """Add the arguments of a learning rate schedule, or of any of several classes."""
        self._add(lr_scheduler_class, nested_key, link_to, "lr_scheduler", "optimizer")

    def _add(self, kind: Any, key: str, link_to: str, role: str, without: str) -> None:
        options: dict[str, Any] = {
            "instantiate": False, "fail_untyped": False, "skip": {without},
        }  # fmt: skip
        if isinstance(kind, tuple) or kind in (Optimizer, LRScheduler):
            self.add_subclass_arguments(kind, key, required=False, **options)
            path = ""
        else:
            self.add_class_arguments(kind, key, sub_configs=True, **options)
            path = f"{kind.__module__}.{kind.__qualname__}"
        if link_to == "AUTOMATIC":
            self.automatic[key] = (role, path)
        else:
            self.link_arguments(key, link_to)


class SaveConfigCallback(Callback):
    """Saves the configuration of a run to the logger's folder.

    Raises:
        ArgumentError: the file exists, and may not be replaced.
    """

    def __init__(
        self, parser: Any, config: Any, config_filename: str = "config.yaml",
        overwrite: bool = False, multifile: bool = False, save_to_log_dir: bool = True,
    ) -> None:  # fmt: skip
        self.parser, self.config, self.config_filename = parser, config, config_filename
        self.overwrite, self.multifile = overwrite, multifile
        self.save_to_log_dir = save_to_log_dir
        self.already_saved = False

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Save, once."""
        if self.already_saved:
            return
        self.already_saved = True
        if not trainer.is_global_zero or trainer.fast_dev_run:
            return
        if self.save_to_log_dir and trainer.log_dir is not None:
            path = Path(trainer.log_dir) / self.config_filename
            if path.exists() and not self.overwrite:
                raise ArgumentError.here(
                    f"SaveConfigCallback: {str(path)!r} exists; give the run another folder, or "
                    f'save_config_kwargs={{"overwrite": True}}'
                )
            path.parent.mkdir(parents=True, exist_ok=True)
            self.parser.save(
                self.config, str(path), skip_check=False, overwrite=self.overwrite,
                multifile=self.multifile,
            )  # fmt: skip
        self.save_config(trainer, pl_module, stage)

    def save_config(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Save the configuration elsewhere as well; a subclass may define it."""


class LightningCLI:
    """Parses the command line, makes trainer, module and data module, and runs a subcommand.

    Args:
        model_class: a module's class, or a function that makes one; any subclass by default.
        datamodule_class: likewise.
        save_config_callback: saves the configuration; `None` saves none.
        save_config_kwargs: its arguments.
        trainer_class: the trainer's class.
        trainer_defaults: the trainer's arguments if the command line does not give them; callbacks
            are added to those given.
        seed_everything_default: the seed; true is one from the environment, false is none.
        parser_kwargs: of the parser, and, by subcommand, of its parsers.
        parser_class: the parser's class.
        subclass_mode_model: whether subclasses of `model_class` may be given.
        subclass_mode_data: whether subclasses of `datamodule_class` may be given.
        args: the command line, or a dictionary; by default that of the process.
        run: whether there are subcommands, one of which is run.
        auto_configure_optimizers: whether optimizers and schedules may be given, which then take
            the place of the module's `configure_optimizers`.

    Attributes:
        trainer, model, datamodule: what was made.
        config, config_init: the parsed arguments, and the same with objects made of them.

    Raises:
        ArgumentError: jsonargparse is not installed.
    """

    def __init__(
        self, model_class: Any = None, datamodule_class: Any = None,
        save_config_callback: type[SaveConfigCallback] | None = SaveConfigCallback,
        save_config_kwargs: dict[str, Any] | None = None, trainer_class: Any = Trainer,
        trainer_defaults: dict[str, Any] | None = None, seed_everything_default: bool | int = True,
        parser_kwargs: dict[str, Any] | None = None, parser_class: Any = LightningArgumentParser,
        subclass_mode_model: bool = False, subclass_mode_data: bool = False, args: ArgsType = None,
        run: bool = True, auto_configure_optimizers: bool = True,
    ) -> None:  # fmt: skip
        self.save_config_callback = save_config_callback
        self.save_config_kwargs = save_config_kwargs or {}
        self.trainer_class, self.trainer_defaults = trainer_class, trainer_defaults or {}
        self.seed_everything_default = seed_everything_default
        self.parser_kwargs, self.parser_class = parser_kwargs or {}, parser_class
        self.auto_configure_optimizers = auto_configure_optimizers
        self.model_class, self._data_class = model_class or Module, datamodule_class
        self.datamodule_class = datamodule_class or DataModule
        self.subclass_mode_model = subclass_mode_model or model_class is None
        self.subclass_mode_data = subclass_mode_data or datamodule_class is None
        self._parsers: dict[str, Any] = {}
        own = {k: v for k, v in self.parser_kwargs.items() if k not in SUBCOMMANDS}
        self.parser: Any = self.init_parser(**own)
        if run:
            self._add_subcommands()
        else:
            self._add_arguments(self.parser)
        self.parse_arguments(self.parser, args)
        self.subcommand: str | None = self.config["subcommand"] if run else None
        self._set_seed()
        self.before_instantiate_classes()
        self.instantiate_classes()
        self.after_instantiate_classes()
        if self.subcommand is not None:
            self._run(self.subcommand)

    # -- parsers

    def init_parser(self, **kwargs: Any) -> Any:
        """A parser that takes files of configuration."""
        parser = self.parser_class(**kwargs)
        parser.add_argument(
            "-c", "--config", action=cast(Any, _jsonargparse).ActionConfigFile,
            help="a file with arguments",
        )  # fmt: skip
        return parser

    def _add_subcommands(self) -> None:
        group = self.parser.add_subcommands()
        for name, left_out in self.subcommands().items():
            parser = self.init_parser(**self.parser_kwargs.get(name, {}))
            self._add_arguments(parser)
            parser.add_method_arguments(
                self.trainer_class, name, skip=set(left_out), fail_untyped=False
            )
            self._parsers[name] = parser
            group.add_subcommand(name, parser, help=f"run the trainer's {name}")

    @staticmethod
    def subcommands() -> dict[str, set[str]]:
        """The trainer's methods, with those of their arguments that are left out."""
        return SUBCOMMANDS

    def _add_arguments(self, parser: Any) -> None:
        parser.add_argument(
            "--seed_everything", type=bool | int, default=self.seed_everything_default,
            help="the seed of all random numbers; true: one from the environment; false: none",
        )  # fmt: skip
        parser.add_lightning_class_args(self.trainer_class, "trainer")
        plain = {k: v for k, v in self.trainer_defaults.items() if k != "callbacks"}
        parser.set_defaults({f"trainer.{k}": v for k, v in plain.items()})
        parser.add_lightning_class_args(
            self.model_class, "model", subclass_mode=self.subclass_mode_model
        )
        has_data = self._data_class is not None
        parser.add_lightning_class_args(
            self.datamodule_class, "data", subclass_mode=self.subclass_mode_data, required=has_data
        )
        self.add_arguments_to_parser(parser)
        if self.auto_configure_optimizers:
            roles = [role for role, _ in parser.automatic.values()]
            if "optimizer" not in roles:
                parser.add_optimizer_args()
            if "lr_scheduler" not in roles:
                parser.add_lr_scheduler_args((LRScheduler, ReduceLROnPlateau))

    def add_arguments_to_parser(self, parser: Any) -> None:
        """Add and link arguments; a subclass may define it."""

    def parse_arguments(self, parser: Any, args: ArgsType) -> None:
        """Parse the command line, or a dictionary."""
        if isinstance(args, dict) or hasattr(args, "as_dict"):
            self.config = parser.parse_object(args)
        else:
            self.config = parser.parse_args(args)

    # -- making

    def _at(self, config: Any, key: str, otherwise: Any = None) -> Any:
        """An entry of the subcommand's configuration."""
        found = config.get(self.subcommand) if self.subcommand else config
        return found.get(key, otherwise)

    def _set_seed(self) -> None:
        seed = self._at(self.config, "seed_everything")
        if seed is not False and seed is not None:
            seed_everything(None if seed is True else seed, workers=True)

    def before_instantiate_classes(self) -> None:
        """Before anything is made; a subclass may define it."""

    def instantiate_classes(self) -> None:
        """Make trainer, module and data module."""
        self.config_init = self.parser.instantiate_classes(self.config)
        self.datamodule = self._at(self.config_init, "data")
        self.model = self._at(self.config_init, "model")
        self._take_optimizers()
        self.trainer = self.instantiate_trainer()

    def after_instantiate_classes(self) -> None:
        """After everything is made; a subclass may define it."""

    def instantiate_trainer(self, **kwargs: Any) -> Any:
        """Make the trainer.

        Args:
            kwargs: arguments in place of the configured ones.
        """
        keys = self._parser().callback_keys
        extra = [self._at(self.config_init, key) for key in keys]
        config = {**self._at(self.config_init, "trainer"), **kwargs}
        given: list[Any] = []
        for found in (config.get("callbacks"), self.trainer_defaults.get("callbacks")):
            given += found if isinstance(found, list) else [] if found is None else [found]
        config["callbacks"] = [*extra, *given]
        if self.save_config_callback is not None and not config.get("fast_dev_run"):
            own = self.config.get(self.subcommand) if self.subcommand else self.config
            options = self.save_config_kwargs
            config["callbacks"].append(self.save_config_callback(self._parser(), own, **options))
        return self.trainer_class(**config)

    def _parser(self) -> Any:
        return self._parsers[self.subcommand] if self.subcommand else self.parser

    # -- optimizers

    def _take_optimizers(self) -> None:
        """Let the configured optimizer and schedule take the place of the module's."""
        found: dict[str, Any] = {}
        for key, (role, path) in self._parser().automatic.items():
            value = self._at(self.config, key)
            if value is not None and role not in found:
                found[role] = {"class_path": path, "init_args": value} if path else value
        if not found.get("optimizer"):
            return

        def configure() -> Any:
            parameters = [p for p in self.model.parameters() if p.requires_grad]
            optimizer = instantiate_class(parameters, found["optimizer"])
            schedule = found.get("lr_scheduler")
            made = None if schedule is None else instantiate_class(optimizer, schedule)
            return self.configure_optimizers(self.model, optimizer, made)

        self.model.configure_optimizers = configure

    @staticmethod
    def configure_optimizers(
        lightning_module: Any, optimizer: Any, lr_scheduler: Any = None
    ) -> Any:
        """What takes the place of the module's `configure_optimizers`."""
        if lr_scheduler is None:
            return optimizer
        monitor = getattr(lr_scheduler, "monitor", None)
        if monitor is None:
            return [optimizer], [lr_scheduler]
        schedule = {"scheduler": lr_scheduler, "monitor": monitor}
        return {"optimizer": optimizer, "lr_scheduler": schedule}

    def _run(self, subcommand: str) -> None:
        left_out = self.subcommands()[subcommand]
        names = inspect.signature(getattr(self.trainer_class, subcommand)).parameters
        told = self.config_init[subcommand]
        options = {k: told[k] for k in names if k in told and k not in left_out and k != "self"}
        for begin in ("before", "run", "after"):
            call = getattr(self, f"{begin}_{subcommand}", None)
            if begin == "run":
                call = getattr(self.trainer, subcommand)
                call(self.model, datamodule=self.datamodule, **options)
            elif callable(call):
                call()


def instantiate_class(args: Any, init: Any) -> Any:
    """An object of a class that a configuration names.

    Args:
        args: positional arguments: one, or a tuple.
        init: `{"class_path": "package.Class", "init_args": {...}}`.
    """
    module, _, name = init["class_path"].rpartition(".")
    kind = getattr(importlib.import_module(module), name)
    options = dict(init.get("init_args") or {})
    return kind(*(args if isinstance(args, tuple) else (args,)), **options)
