from hypothesis import given
from hypothesis import strategies as st

from sidestage.agents.claude_code.tree import Node, Tree


def tree(*nodes: Node) -> Tree:
    values = Tree()
    for node in nodes:
        values.add(node)
    return values


def node(name: str, parent: str | None, offset: int, **more: object) -> Node:
    values = {"time": f"{offset:06}", "is_turn": True, **more}
    return Node(offset=offset, uuid=name, parent=parent, **values)  # type: ignore[arg-type]  # a test's shorthand


def test_the_newest_leaf_is_the_active_branch() -> None:
    grown = tree(
        node("a", None, 0), node("b", "a", 1), node("c", "a", 2), node("d", "b", 3)
    )
    active, other = grown.branches()
    assert (active.leaf, active.offsets) == ("d", (0, 1, 3))
    assert (other.leaf, other.offsets) == ("c", (0, 2))


def test_time_decides_before_the_place_in_the_file() -> None:
    grown = tree(
        node("a", None, 0),
        node("new", "a", 1, time="2026-11-30T12:00:09.000Z"),
        node("old", "a", 2, time="2026-11-30T12:00:01.000Z"),
    )
    assert grown.branches()[0].leaf == "new"


def test_parallel_calls_and_their_results_are_one_branch() -> None:
    """Only one of two parallel calls has the conversation's rest below it."""
    grown = tree(
        node("prompt", None, 0),
        node("call1", "prompt", 1, message_id="m", calls=("c1",)),
        node("call2", "call1", 2, message_id="m", calls=("c2",)),
        node("result2", "call2", 3, results=("c2",), is_turn=False),
        node("result1", "call1", 4, results=("c1",), is_turn=False),
        node("rest", "result1", 5),
    )
    (only,) = grown.branches()
    assert only.offsets == (0, 1, 2, 3, 4, 5)


def test_each_branch_keeps_its_own_result_of_a_call() -> None:
    grown = tree(
        node("call", None, 0, message_id="m", calls=("c",)),
        node("first", "call", 1, results=("c",), is_turn=False),
        node("a", "first", 2),
        node("second", "call", 3, results=("c",), is_turn=False),
        node("b", "second", 4),
    )
    active, other = grown.branches()
    assert active.offsets == (0, 3, 4)
    assert other.offsets == (0, 1, 2)


def test_context_beside_the_conversation_makes_no_branch() -> None:
    grown = tree(
        node("a", None, 0), node("hook", "a", 1, is_turn=False), node("b", "a", 2)
    )
    assert [branch.leaf for branch in grown.branches()] == ["b"]


def test_doubled_records_change_nothing() -> None:
    once = tree(node("a", None, 0), node("b", "a", 1))
    twice = tree(
        node("a", None, 0), node("b", "a", 1), node("a", None, 2), node("b", "a", 3)
    )
    assert once.branches() == twice.branches()


def test_a_cycle_ends_the_walk() -> None:
    """After `/branch` over a compaction, logical parents alone run in a ring."""
    ring = tree(node("a", "c", 0), node("b", "a", 1), node("c", "b", 2))
    assert ring.branches()[0].offsets == (0, 1, 2)
    tail = tree(*ring.nodes.values(), node("d", "c", 3))
    assert tail.branches()[0].offsets == (0, 1, 2, 3)


def test_a_thousand_parallel_results_do_not_make_a_thousand_walks() -> None:
    nodes = [node("0", None, 0)]
    nodes += [node(str(i), str(i - 1), i) for i in range(1, 5000)]
    nodes += [node(f"x{i}", str(i), 5000 + i, is_turn=False) for i in range(5000)]
    grown = tree(*nodes, node("end", "4999", 20_000))
    assert len(grown.branches()) == 1


names = st.sampled_from("abcdef")


@given(st.lists(st.tuples(names, st.none() | names, st.booleans()), max_size=12))
def test_no_links_upset_the_tree(links: list[tuple[str, str | None, bool]]) -> None:
    grown = tree(
        *(
            node(name, parent, offset, is_turn=turn, message_id=parent, calls=(name,))
            for offset, (name, parent, turn) in enumerate(links)
        )
    )
    for branch in grown.branches():
        assert list(branch.offsets) == sorted(set(branch.offsets))
