"""The conversation's tree: which records make up a branch.

Two processes may write one file, and a person may go back, so the records are a tree,
linked by `uuid` and `parentUuid`. The branch of the newest leaf is the active one: that
is what the CLI itself resumes.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

BRANCH_LIMIT: Final = 50
"""Branches listed, newest first; a file with more has been forked by a machine."""


@dataclass(frozen=True, slots=True)
class Node:
    """What the tree needs to know of one record."""

    offset: int
    """Where its line starts: the record's place in the file."""
    uuid: str
    parent: str | None
    time: str
    """The timestamp as written: ISO times sort as text."""
    message_id: str | None = None
    """The model answer whose block this is."""
    calls: tuple[str, ...] = ()
    """Tool calls made here."""
    results: tuple[str, ...] = ()
    """Tool calls answered here."""
    is_turn: bool = False
    """A prompt, an answer or a summary: something that makes a branch worth showing."""


@dataclass(frozen=True, slots=True)
class BranchNodes:
    """One branch: the offsets of its records in file order, named by its leaf."""

    leaf: str
    offsets: tuple[int, ...]
    last_time: str


@dataclass(slots=True)
class Tree:
    """Nodes by uuid. The first record of a uuid stays; a doubled line adds nothing."""

    nodes: dict[str, Node] = field(default_factory=dict)
    _children: dict[str, list[str]] = field(default_factory=dict)
    _answers: dict[str, list[str]] = field(default_factory=dict)
    _results: dict[str, list[str]] = field(default_factory=dict)

    def add(self, node: Node) -> bool:
        """Add a record; False if its uuid is there already."""
        if node.uuid in self.nodes:
            return False
        self.nodes[node.uuid] = node
        if node.parent is not None:
            self._children.setdefault(node.parent, []).append(node.uuid)
        if node.message_id is not None:
            self._answers.setdefault(node.message_id, []).append(node.uuid)
        for call in node.results:
            self._results.setdefault(call, []).append(node.uuid)
        return True

    def branches(self) -> tuple[BranchNodes, ...]:
        """Return the branches, the active one first, then newest first."""
        by_age = sorted(
            self.nodes.values(), key=lambda node: (node.time, node.offset), reverse=True
        )
        leaves = [node for node in by_age if not self._has_child(node)]
        # Bad data may run in a ring: then the newest record is as good as a leaf.
        leaves = leaves or by_age[:1]
        told: set[str] = set()
        branches: list[BranchNodes] = []
        for leaf in leaves:
            if branches and not any(node.is_turn for node in self._chain(leaf, told)):
                continue  # it shows nothing that a newer branch does not
            members = self._with_siblings(self._chain(leaf))
            told.update(node.uuid for node in members)
            branches.append(_branch(leaf, members))
            if len(branches) == BRANCH_LIMIT:
                break
        return tuple(branches)

    def _has_child(self, node: Node) -> bool:
        return any(child != node.uuid for child in self._children.get(node.uuid, ()))

    def _chain(self, leaf: Node, told: Collection[str] = ()) -> list[Node]:
        """Return the leaf and its ancestors, up to the first one in *told*.

        A cycle in bad data ends it too.
        """
        chain: list[Node] = []
        seen: set[str] = set()
        node: Node | None = leaf
        while node is not None and node.uuid not in seen and node.uuid not in told:
            seen.add(node.uuid)
            chain.append(node)
            node = self.nodes.get(node.parent) if node.parent else None
        return chain

    def _with_siblings(self, chain: Sequence[Node]) -> list[Node]:
        """Add the other blocks of the chain's answers, and the results of their calls.

        Parallel calls hang side by side in the tree: only one of them has the rest of
        the conversation below it, but all belong to the answer.
        """
        members = {node.uuid: node for node in chain}
        for uuid in self._sibling_answers(chain):
            members.setdefault(uuid, self.nodes[uuid])
        answered = {call for node in members.values() for call in node.results}
        for node in tuple(members.values()):
            for call in node.calls:
                if call not in answered and (results := self._results.get(call)):
                    members.setdefault(results[0], self.nodes[results[0]])
        return list(members.values())

    def _sibling_answers(self, chain: Sequence[Node]) -> Iterable[str]:
        ids = {node.message_id for node in chain if node.message_id is not None}
        return (uuid for id_ in ids for uuid in self._answers[id_])


def _branch(leaf: Node, members: Sequence[Node]) -> BranchNodes:
    offsets = tuple(sorted(node.offset for node in members))
    return BranchNodes(leaf.uuid, offsets, leaf.time)
