"""The outbox loses no decision and counts none twice: dead servers, broken answers, reloads, many
reviewers.
"""

from __future__ import annotations

import json
import threading
import urllib.request
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect
from tests.web.conftest import (
    Served,
    Watch,
    complete_item,
    eventually,
    item_of,
    pressed,
    ready,
    unsent,
)

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page, Route

pytestmark = pytest.mark.slow


def reject(page: Page) -> str:
    """Decide the item on the page, whatever it lacks; the id of the next."""
    return pressed(page, "x", "1")


def test_decisions_outlive_the_server_and_a_reload_and_arrive_once(
    review: Page, served: Served, watch: Watch
) -> None:
    watch.expected = ("Failed to load resource", "ERR_CONNECTION")
    served.kill()
    first = item_of(review)
    second = reject(review)
    reject(review)
    eventually(lambda: unsent(review) == 2)
    eventually(lambda: "2 decisions have not been sent" in review.locator("#unsent").inner_text())
    served.start()
    review.reload()
    ready(review)
    eventually(lambda: unsent(review) == 0)
    assert [(key, verb) for key, verb, _ in served.events()] == [
        (int(first[1:]), "reject"),
        (int(second[1:]), "reject"),
    ]


def test_an_answer_lost_on_its_way_counts_once(review: Page, served: Served, watch: Watch) -> None:
    watch.expected = ("Failed to load resource", "ERR_FAILED")
    lost: list[str] = []

    def lose_first(route: Route) -> None:
        if lost:
            route.continue_()
            return
        lost.append(route.fetch().text())
        route.abort()

    review.route("**/api/decisions", lose_first)
    first = item_of(review)
    reject(review)
    eventually(lambda: unsent(review) == 0)
    assert json.loads(lost[0])["results"][0]["ok"]
    assert [(key, verb) for key, verb, _ in served.events()] == [(int(first[1:]), "reject")]


def test_an_answer_that_breaks_off_counts_once(review: Page, served: Served, watch: Watch) -> None:
    watch.expected = ("Failed to load resource",)
    halves: list[str] = []

    def halve_first(route: Route) -> None:
        if halves:
            route.continue_()
            return
        halves.append(route.fetch().text()[:20])
        route.fulfill(status=200, body=halves[0])

    review.route("**/api/decisions", halve_first)
    first = item_of(review)
    reject(review)
    eventually(lambda: unsent(review) == 0)
    ready(review)
    expect(review.locator("#said .alert"), "it was accepted").to_have_count(0)
    assert [(key, verb) for key, verb, _ in served.events()] == [(int(first[1:]), "reject")]


def test_a_rerun_that_hangs_lets_decisions_go(
    context: BrowserContext, review: Page, served: Served, watch: Watch
) -> None:
    watch.expected = ("Failed to load resource",)
    context.add_init_script(
        "const whole = AbortSignal.timeout.bind(AbortSignal); AbortSignal.timeout = (ms) => whole(ms / 30);"
    )
    review.reload()
    ready(review)
    hung: list[Route] = []

    def hang(route: Route) -> None:
        hung.append(route)

    review.route("**/api/rerun", hang)
    again = complete_item(review)
    pressed(review, "r", "1")
    eventually(lambda: unsent(review) == 1 and len(hung) == 1)
    second = reject(review)
    third = reject(review)
    assert again not in (second, third)
    eventually(lambda: unsent(review) == 1)
    assert [verb for _, verb, _ in served.events()] == ["reject", "reject"]
    review.unroute("**/api/rerun")
    eventually(lambda: unsent(review) == 0)
    eventually(
        lambda: (int(again[1:]), "rerun") in [(key, verb) for key, verb, _ in served.events()]
    )


def test_a_server_in_trouble_is_asked_again(review: Page, served: Served, watch: Watch) -> None:
    watch.expected = ("Failed to load resource",)
    troubles = [500, 503, 429]

    def trouble(route: Route) -> None:
        if troubles:
            route.fulfill(status=troubles.pop(), body="{}")
        else:
            route.continue_()

    review.route("**/api/decisions", trouble)
    first = item_of(review)
    second = reject(review)
    assert second != first, "the next item does not wait for the server"
    eventually(lambda: unsent(review) == 0)
    assert len(served.events()) == 1


def test_undo_before_the_decision_travelled_leaves_no_trace(
    review: Page, served: Served, watch: Watch
) -> None:
    watch.expected = ("Failed to load resource", "ERR_INTERNET_DISCONNECTED")
    review.context.set_offline(True)
    first = item_of(review)
    reject(review)
    reject(review)
    review.keyboard.press("u")
    review.keyboard.press("u")
    ready(review)
    assert item_of(review) == first
    review.context.set_offline(False)
    eventually(lambda: unsent(review) == 0)
    left = Counter(verb for _, verb, _ in served.events())
    assert left["reject"] == left["undo"]
    assert served.states() == {"pending": 10}


BETWEEN = """() => {
  const write = Storage.prototype.setItem;
  let n = 0;
  Storage.prototype.setItem = function (key, value) {
    write.call(this, key, value);
    if (!key.startsWith("assay.outbox.") || n === 2) return;
    n += 1;
    const other = { ...JSON.parse(value), key: `other-${n}-xxxxxxx`, id: `a${8 + n}` };
    write.call(this, key.replace(/[^.]*$/, other.key), JSON.stringify(other));
  };
}"""
"""Each decision that this tab keeps is followed by one that another tab keeps at the same time."""


def test_two_tabs_store_both_simultaneous_decisions(
    review: Page, served: Served, watch: Watch
) -> None:
    watch.expected = ("Failed to load resource", "ERR_INTERNET_DISCONNECTED")
    review.context.set_offline(True)
    review.evaluate(BETWEEN)
    mine: list[str] = []
    while len(mine) < 2:
        here = item_of(review)
        if here in {"a9", "a10"}:
            pressed(review, "s")
            continue
        mine.append(here)
        reject(review)
    eventually(lambda: unsent(review) == 4)
    review.context.set_offline(False)
    eventually(lambda: unsent(review) == 0)
    assert sorted((key, verb) for key, verb, _ in served.events()) == sorted(
        (int(item[1:]), "reject") for item in (*mine, "a9", "a10")
    )


def sending(page: Page, served: Served) -> Page:
    """Another tab that is the one which sends: nothing leaves this one until it lets go."""
    other = page.context.new_page()
    other.goto(f"{served.url}/signin")
    other.evaluate(
        """() => new Promise((held) => {
          navigator.locks.request("assay-outbox", () => { held(); return new Promise((go) => { window.letGo = go; }); });
        })"""
    )
    return other


def test_decision_sent_by_another_tab_during_undo_is_undone(review: Page, served: Served) -> None:
    other = sending(review, served)
    first = item_of(review)
    reject(review)
    eventually(lambda: unsent(review) == 1)
    ((name, value),) = review.evaluate(
        "() => Object.entries(localStorage).filter(([key]) => key.startsWith('assay.outbox.'))"
    )
    review.keyboard.press("u")
    eventually(lambda: unsent(review) == 0)
    other.evaluate(
        "([name, value]) => localStorage.setItem(name, JSON.stringify({ ...JSON.parse(value), tried: true }))",
        [name, value],
    )
    eventually(lambda: unsent(review) == 2)
    other.evaluate("() => window.letGo()")
    eventually(lambda: unsent(review) == 0)
    assert [(key, verb) for key, verb, _ in served.events()] == [
        (int(first[1:]), "reject"),
        (int(first[1:]), "undo"),
    ]


def test_a_box_of_one_key_is_taken_over(review: Page, served: Served) -> None:
    entries = [
        {
            "key": f"012345678{n}",
            "id": f"a{n}",
            "verb": "reject",
            "run": served.run_id,
            "reviewer": "ann",
            "what": f"Gate 1 · Trial {n} of 5",
            "reason": "why",
        }
        for n in (1, 2)
    ]
    review.evaluate(
        """entries => { const { store } = JSON.parse(document.getElementById('boot').textContent);
        localStorage[`assay.outbox.2.${store}`] = JSON.stringify(entries); }""",
        entries,
    )
    review.reload()
    eventually(lambda: sorted(served.events()) == [(1, "reject", "ann"), (2, "reject", "ann")])
    eventually(lambda: unsent(review) == 0)


def test_unsent_decision_can_be_undone_after_a_reload(review: Page, served: Served) -> None:
    sending(review, served)
    first = item_of(review)
    reject(review)
    eventually(lambda: unsent(review) == 1)
    review.reload()
    assert ready(review) != first
    review.keyboard.press("u")
    eventually(lambda: item_of(review) == first)
    assert unsent(review) == 0
    assert served.events() == []


def test_eight_reviewers_at_once_lose_and_double_nothing(served: Served) -> None:
    given: list[str] = []
    refused: list[Any] = []

    def work(number: int) -> None:
        for _ in range(4):
            response = served.get(f"/api/review/next?desk=desk-{number}&limit=1")
            for item in response["items"]:
                body = {
                    "decisions": [
                        {
                            "key": f"key-{number}-{item['id']}",
                            "id": item["id"],
                            "verb": "reject",
                            "reviewer": f"r{number}",
                            "reason": "why",
                        }
                    ]
                }
                for _twice in range(2):
                    request = urllib.request.Request(
                        f"{served.url}/api/decisions",
                        json.dumps(body).encode(),
                        {"content-type": "application/json"},
                    )
                    with urllib.request.urlopen(request, timeout=30) as answer:
                        result = json.load(answer)["results"][0]
                    if not result["ok"]:
                        refused.append(result)
                given.append(item["id"])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert refused == []
    assert sorted(given) == sorted({f"a{n}" for n in range(1, 11)})
    assert served.states() == {"rejected": 10}
    assert len(served.events()) == 10
