"""Installation settings that operators change at run time."""

from collections.abc import Mapping

from tenure._model.audit import By
from tenure._model.ids import Json
from tenure._rules.runtime_settings import check_setting
from tenure._store.postgres.statements import Jsonb, QueryBase
from tenure._store.steps import Op, atomic, atomically


class SettingQueries(QueryBase):
    def set(self, name: str, value: Json, by: By) -> Op[None]:
        check_setting(name, value)
        yield from atomically(self._set_setting(name, value, by))

    def _set_setting(self, name: str, value: Json, by: By) -> Op[None]:
        rows = yield self._query("lock_setting", name=name, changed_by=by.actor)
        before = rows[0]["before"]
        yield self._query("set_setting", name=name, value=Jsonb(value), changed_by=by.actor)
        yield from self._audit(by, "setting.set", [f"setting:{name}"], before=before, after=value)

    @atomic
    def reset(self, name: str, by: By) -> Op[None]:
        rows = yield self._query("reset_setting", name=name)
        if rows:
            before = rows[0]["before"]
            yield from self._audit(by, "setting.reset", [f"setting:{name}"], before=before)

    def changed(self) -> Op[Mapping[str, Json]]:
        rows = yield self._query("settings")
        return {row["name"]: row["value"] for row in rows}
