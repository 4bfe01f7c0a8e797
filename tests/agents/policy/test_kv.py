import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.policy.kv import BLOCK_TOKENS, Group, PrefixCache, Rows, Shape, Window, attend_window, block_keys

torch = pytest.importorskip("torch")

SHAPE = Shape(layers=2, heads=3, size=2)
BLOCK_BYTES = SHAPE.bytes_per_token(4) * BLOCK_TOKENS


def rows_of(count: int, tokens: int) -> Rows:
    rows = Rows(SHAPE, dtype=torch.float32, device=torch.device("cpu"))
    rows.reserve(count, tokens, used=0)
    return rows


def cache_of(blocks: int) -> PrefixCache:
    return PrefixCache(SHAPE, max_bytes=blocks * BLOCK_BYTES, dtype=torch.float32, device=torch.device("cpu"))


def fill(rows: Rows, row: int, tokens: list[int]) -> None:
    """Write keys and values that tell the token and where it stands."""
    for place in range(len(tokens)):
        rows.data[:, :, row, :, place] = hash(tuple(tokens[: place + 1])) % 10_007


def keys_of(tokens: list[int]) -> list[bytes]:
    return block_keys(tokens, root=b"base")


def test_keys_stand_for_all_that_came_before() -> None:
    one = list(range(3 * BLOCK_TOKENS))
    assert keys_of(one[:-1]) == keys_of(one)[:2]
    assert keys_of(one) == block_keys(one, root=b"base", known=keys_of(one)[:1])
    assert keys_of([9, *one[1:]])[1:] != keys_of(one)[1:]
    assert len({*keys_of(one), *block_keys(one, root=b"adapter@1")}) == 6


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 5), st.integers(0, BLOCK_TOKENS - 1)),
        min_size=1,
        max_size=20,
    ),
    st.integers(0, 12),
)
def test_what_is_loaded_is_what_was_saved(prompts: list[tuple[int, int, int, int]], capacity: int) -> None:
    cache = cache_of(capacity)
    for first, second, blocks, rest in prompts:
        tokens = [first] * BLOCK_TOKENS + [second] * (BLOCK_TOKENS * (blocks - 1) + rest)
        keys = keys_of(tokens)
        found = cache.lookup(keys)
        assert len(found) <= len(keys)
        rows = rows_of(2, len(tokens))
        cache.load(rows, first=1, blocks=[found])
        true = rows_of(2, len(tokens))
        fill(true, 1, tokens)
        size = len(found) * BLOCK_TOKENS
        assert torch.equal(rows.data[:, :, 1, :, :size], true.data[:, :, 1, :, :size])
        cache.save(true, [(1, keys)])
        assert cache.blocks <= capacity
        assert len(cache.lookup(keys)) == min(len(keys), capacity)


def test_beginnings_outlive_what_follows_them() -> None:
    cache = cache_of(4)
    shared, rows = [1] * BLOCK_TOKENS, rows_of(1, 3 * BLOCK_TOKENS)
    for end in range(2, 6):
        tokens = shared + [end] * 2 * BLOCK_TOKENS
        fill(rows, 0, tokens)
        cache.save(rows, [(0, keys_of(tokens))])
        assert len(cache.lookup(keys_of(tokens))) == 3
    assert cache.blocks == 4
    assert len(cache.lookup(keys_of(shared))) == 1


def test_rows_keep_what_they_hold_as_they_grow() -> None:
    rows = rows_of(2, 10)
    fill(rows, 0, [1, 2, 3])
    fill(rows, 1, [4, 5])
    before = rows.data[:, :, :2, :, :3].clone()
    rows.reserve(5, 400, used=2)
    assert rows.data.shape[2] >= 5 and rows.data.shape[4] > 400
    assert torch.equal(rows.data[:, :, :2, :, :3], before)
    rows.move(1, 4, tokens=2)
    assert torch.equal(rows.data[:, :, 4, :, :2], before[:, :, 1, :, :2])


def test_a_window_writes_by_position_and_hides_the_padding() -> None:
    rows = rows_of(3, 8)
    window = Window(rows, [Group(1, [[7], [8, 9]], [2, 4])])
    assert window.ids.tolist() == [[0, 7, 8, 9]] and window.places.tolist() == [[0, 2, 4, 5]]
    assert window.ends.tolist() == [1, 3]
    keys = torch.arange(24.0).view(1, 3, 4, 2)
    _, layer = window.update(keys, -keys, 1)
    assert torch.equal(layer[0, 1, :, 2], keys[0, :, 1]) and torch.equal(layer[0, 2, :, 4:6], keys[0, :, 2:])
    assert torch.equal(layer[1, 1:, :, :6], -layer[0, 1:, :, :6])
    assert not layer[0, 1, :, :2].any() and not rows.data[0].any() and not rows.data[1, :, 0].any()


@given(
    st.lists(
        st.lists(st.tuples(st.integers(1, 4), st.integers(0, 5)), min_size=1, max_size=3),
        min_size=1,
        max_size=3,
    )
)
def test_each_query_sees_its_own_row_up_to_itself(shape: list[list[tuple[int, int]]]) -> None:
    generator = torch.Generator().manual_seed(0)
    rows = rows_of(sum(map(len, shape)), 9)
    rows.data.copy_(torch.randn(rows.data.shape, generator=generator))
    groups, first = [], 0
    for members in shape:
        groups.append(Group(first, [[1] * size for size, _ in members], [start for _, start in members]))
        first += len(members)
    window = Window(rows, groups)
    total, heads = window.ids.shape[1], 2 * rows.data.shape[3]
    keys, values = torch.randn((2, 1, rows.data.shape[3], total, 2), generator=generator)
    query = torch.randn((1, heads, total, 2), generator=generator)
    key, layer = window.update(keys, values, 1)
    seen, _ = attend_window(None, query, key, layer, None, scaling=0.7)
    row, ends = 0, iter(window.ends.tolist())
    for members in shape:
        for size, start in members:
            last = next(ends)
            for back in range(size):
                upto = start + size - back
                for head in range(heads):
                    scores = 0.7 * layer[0, row, head // 2, :upto] @ query[0, head, last - back]
                    expected = scores.softmax(0) @ layer[1, row, head // 2, :upto]
                    assert torch.allclose(seen[0, last - back, head], expected, atol=1e-5)
            row += 1
