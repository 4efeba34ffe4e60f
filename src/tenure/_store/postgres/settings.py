"""Settings of the whole installation that operators change at run time."""

from collections.abc import Mapping

from tenure._model.audit import By
from tenure._model.ids import Json
from tenure._rules.runtime_settings import check_setting
from tenure._store.postgres.statements import Jsonb, QueryBase
from tenure._store.steps import Op, atomic, atomically


class SettingQueries(QueryBase):
    """The part of the store that keeps what operators set for all."""

    def set(self, name: str, value: Json, by: By) -> Op[None]:
        """Change a setting for the whole installation at run time."""
        check_setting(name, value)
        yield from atomically(self._set_setting(name, value, by))

    def _set_setting(self, name: str, value: Json, by: By) -> Op[None]:
        rows = yield self._query("lock_setting", name=name, changed_by=by.actor)
        before = rows[0]["before"]
        yield self._query("set_setting", name=name, value=Jsonb(value), changed_by=by.actor)
        yield from self._audit(by, "setting.set", [f"setting:{name}"], before=before, after=value)

    @atomic
    def reset(self, name: str, by: By) -> Op[None]:
        """Take a setting back to its built-in value."""
        rows = yield self._query("reset_setting", name=name)
        if rows:
            before = rows[0]["before"]
            yield from self._audit(by, "setting.reset", [f"setting:{name}"], before=before)

    def changed(self) -> Op[Mapping[str, Json]]:
        """The settings changed at run time."""
        rows = yield self._query("settings")
        return {row["name"]: row["value"] for row in rows}
