"""People in a browser: an invited reviewer comes in by the link and goes by the own name; an owner
changes theirs.
"""

from __future__ import annotations

from playwright.sync_api import Page, expect
from tests.web.conftest import Served, Watch, ready

from assay.app import people
from assay.app.workspace import Workspace


def test_link_leads_to_the_review_and_the_own_name_signs_out(page: Page, served: Served) -> None:
    with Workspace.open(served.folder, environment={}) as workspace:
        invitation = people.invite(workspace.store, "ann", role="reviewer", base=served.url)
    page.goto(invitation.link)
    ready(page)
    page.locator("#signout").click()
    page.wait_for_url("**/signin")
    expect(page.locator("#signout")).to_have_count(0)


def test_a_refused_name_says_why_at_its_field(page: Page, served: Served, watch: Watch) -> None:
    watch.expected = ("422",)
    page.goto(served.url)
    page.get_by_role("button", name="Reviewer").click()
    page.get_by_label("Name").fill("ann/b")
    page.get_by_role("button", name="Save").click()
    page.wait_for_function(
        "() => document.getElementById('reviewer-name').validationMessage.includes('slash')"
    )
    page.get_by_label("Name").fill("ann b")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#reviewer-shown")).to_have_text("ann b", use_inner_text=True)
