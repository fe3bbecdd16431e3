"""Lanes, pools, groups, targets and pauses, over HTTP; the node writes the name of the key as the actor."""

from datetime import datetime
from typing import Any
from urllib.parse import quote

from penstock.domain.breakers import Target
from penstock.domain.lanes import Lane
from penstock.domain.pauses import Pause
from penstock.domain.pools import Pool
from penstock.stores.remote.decoding import named_lane, named_pool, pause_of, target_of
from penstock.stores.remote.http import Api
from penstock.wire import Raw


class SettingsPart:
    """What is configured and what is stopped; `RemoteStore` brings the API."""

    api: Api

    def lanes(self) -> dict[str, Lane]:
        """Return every lane by name."""
        return {one["name"]: named_lane(one) for one in self.api.get("/api/lanes")["lanes"]}

    def pools(self) -> dict[str, Pool]:
        """Return every pool by name."""
        return {one["name"]: named_pool(one) for one in self.api.get("/api/pools")["pools"]}

    def put_lane(
        self,
        lane: Lane,
        *,
        actor: str,  # noqa: ARG002
        expect: int | None = None,
        reason: str | None = None,
    ) -> Lane:
        """Create the lane or change its settings."""
        settings = {**lane.settings, "retry": Raw(lane.settings["retry"])}
        return named_lane(self._put("lanes", lane.name, settings, expect, reason))

    def put_pool(self, pool: Pool, *, actor: str, expect: int | None = None) -> Pool:  # noqa: ARG002
        """Create the pool or change its settings."""
        return named_pool(self._put("pools", pool.name, dict(pool.settings), expect))

    def pause_lane(
        self,
        name: str,
        *,
        paused: bool,
        actor: str,  # noqa: ARG002
        reason: str,
        until: datetime | None = None,
    ) -> Lane:
        """Stop a lane or let it go."""
        return named_lane(self._pause("lanes", name, reason, until, paused=paused))

    def pause_pool(
        self,
        name: str,
        *,
        paused: bool,
        actor: str,  # noqa: ARG002
        reason: str,
        until: datetime | None = None,
    ) -> Pool:
        """Stop a pool or let it go."""
        return named_pool(self._pause("pools", name, reason, until, paused=paused))

    def delete_lane(self, name: str, *, actor: str, reason: str | None = None) -> None:  # noqa: ARG002
        """Delete a lane."""
        self.api.send("DELETE", f"/api/lanes/{quote(name)}?reason={quote(reason or 'deleted')}", {})

    def delete_pool(self, name: str, *, actor: str, reason: str | None = None) -> None:  # noqa: ARG002
        """Delete a pool."""
        self.api.send("DELETE", f"/api/pools/{quote(name)}?reason={quote(reason or 'deleted')}", {})

    def pause_group(
        self,
        lane: str,
        group: str,
        *,
        paused: bool,
        actor: str,  # noqa: ARG002
        reason: str,
        until: datetime | None = None,
    ) -> None:
        """Stop or let go one group."""
        path = "/api/groups/pause" if paused else "/api/groups/resume"
        also = {"until": until} if paused and until else {}
        self.api.send("POST", path, {"lane": lane, "group": group, "reason": reason, **also})

    def targets(self) -> dict[str, Target]:
        """Return the targets in trouble."""
        found = self.api.get("/api/targets")["targets"]
        return {one["name"]: target_of(one) for one in found}

    def reset_target(self, name: str, *, actor: str, reason: str) -> bool:  # noqa: ARG002
        """Close a target's breaker."""
        body = {"target": name, "reason": reason}
        return bool(self.api.send("POST", "/api/targets/reset", body)["reset"])

    def pause_target(
        self,
        name: str,
        *,
        paused: bool,
        actor: str,  # noqa: ARG002
        reason: str,
        until: datetime | None = None,
    ) -> Pause | None:
        """Stop sending to a target, or let it go."""
        also = {"until": until} if paused and until else {}
        path = "/api/targets/pause" if paused else "/api/targets/resume"
        return pause_of(self.api.send("POST", path, {"target": name, "reason": reason, **also}))

    def drain_node(self, node: int, *, draining: bool, actor: str, reason: str) -> Pause | None:  # noqa: ARG002
        """Tell a node to claim nothing more, or to go on."""
        path = f"/api/nodes/{node}/{'drain' if draining else 'resume'}"
        return pause_of(self.api.send("POST", path, {"reason": reason}), "drain")

    def store_pause(self) -> Pause | None:
        """Return the pause of everything."""
        return pause_of(self.api.get("/api/pause"))

    def pause_store(
        self,
        *,
        paused: bool,
        actor: str,  # noqa: ARG002
        reason: str,
        until: datetime | None = None,
    ) -> Pause | None:
        """Stop everything, or let it go."""
        if not paused:
            return pause_of(self.api.send("POST", "/api/resume", {"reason": reason}))
        return pause_of(self.api.send("POST", "/api/pause", {"reason": reason, "until": until}))

    def _put(
        self, kind: str, name: str, settings: dict[str, Any], expect: int | None, reason: str | None = None
    ) -> dict[str, Any]:
        headers = {} if expect is None else {"If-Match": f'"{expect}"'} if expect else {"If-None-Match": "*"}
        body = {"settings": settings} | ({} if reason is None else {"reason": reason})
        return self.api.send("PUT", f"/api/{kind}/{quote(name)}", body, headers=headers)

    def _pause(
        self, kind: str, name: str, reason: str, until: datetime | None, *, paused: bool
    ) -> dict[str, Any]:
        body = {"reason": reason} | ({"until": until} if paused and until else {})
        return self.api.send("POST", f"/api/{kind}/{quote(name)}/{'pause' if paused else 'resume'}", body)
