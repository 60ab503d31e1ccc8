"""Sixty cases with values from independent libraries and printed sources, to their stated
tolerances.

`statistics_cases.json` holds data, parameters and expected values; each question is put to the one
public function that the package docstring names for it, which makes this file an example of their
use as well.
"""

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest

from assay import statistics as st

Case: TypeAlias = Mapping[str, Any]
CASES: list[Case] = json.loads(
    (Path(__file__).parent / "statistics_cases.json").read_text(encoding="utf-8")
)

# Not offered: the interval that is not recommended, and values of methods kept for comparison only.
COMPARISON_ONLY = {
    "bell_mccaffrey_df",
    "pooled_t_p_seed",
    "ci_z_ppi_py",
    "n_exact",
    "log_strength_finite",
}


def table_of(case: Case) -> st.ScoreTable:
    rows = case["rows"]
    counted = rows.get("approved", [True] * len(rows["task"]))
    columns: dict[str, Any] = {
        name: [value for value, keep in zip(rows[name], counted, strict=True) if keep]
        for name in ("task", "candidate", "trial", "score", "weight")
        if name in rows
    }
    return st.ScoreTable.from_columns(**columns)


def said(reason: str | None, warnings: tuple[st.Caution, ...]) -> list[str]:
    """Codes that may stand for the expected one: the reason where something is None, else the
    warnings.
    """
    return [reason] if reason is not None else [one.code for one in warnings]


def mean(case: Case) -> dict[str, Any]:
    found = st.estimate(table_of(case), case["params"]["candidate"], case["params"].get("scope"))
    answer = {
        "mean": found.mean,
        "sd": found.sd,
        "se": found.std_err,
        "n_trials": found.n_trials,
        "n_tasks": found.n_tasks,
        "n_eff": found.n_eff,
        "df": found.df,
        "ci": found.ci95,
        "ci_method": found.method,
        "scope": found.scope,
        "reason": said(found.reason, found.warnings),
        "warning": [one.code for one in found.warnings],
    }
    if found.df is not None and found.std_err is not None and found.mean is not None:
        half = t_quantile(0.975, found.df) * found.std_err
        answer["ci_t"] = (found.mean - half, found.mean + half)
    return answer


def mean_binary(case: Case) -> dict[str, Any]:
    table = table_of(case)
    found = st.estimate(table, case["params"]["candidate"])
    share = st.proportion(int(table.score.sum()), table.score.size)
    assert share.ci95 == pytest.approx(found.ci95)
    return {
        "mean": found.mean,
        "n_trials": found.n_trials,
        "ci": found.ci95,
        "ci_wilson": share.wilson,
        "ci_clopper_pearson": share.clopper_pearson,
        "ci_jeffreys": share.jeffreys,
        "ci_agresti_coull": share.agresti_coull,
    }


def difference(case: Case) -> dict[str, Any]:
    params = case["params"]
    table = table_of(case)
    found = st.compare(table, params["a"], params["b"], params.get("scope"))
    effects, opinion, other = found.effects, found.second_opinion, found.other_scope
    differences = np.array([one.difference for one in found.by_task])
    answer: dict[str, Any] = {
        "diff": found.difference,
        "se": found.std_err,
        "df": found.df,
        "t": found.t,
        "p_value": found.p_value,
        "p_method": found.method,
        "ci": found.ci95,
        "n_tasks": found.n_tasks,
        "n_eff": found.n_eff,
        "scope": found.scope,
        "tasks_won": found.tasks_won,
        "tasks_lost": found.tasks_lost,
        "tasks_tied": found.tasks_tied,
        "task_diffs": differences.tolist(),
        "prob_superiority": found.prob_superiority,
        "reason": said(found.reason, found.warnings),
        "warning": [one.code for one in found.warnings],
        "p_permutation_exact": opinion.p_value if opinion else None,
        "p_signflip_exact": st.sign_flip(differences) if differences.size else None,
    }
    if effects is not None:
        answer |= {
            "cohen_d_pooled": effects.cohen_d,
            "hedges_g": effects.hedges_g,
            "d_z": effects.d_z,
            "g_z": effects.g_z,
        }
    if other is not None:
        answer["these_tasks"] = {
            "diff": other.difference,
            "se": other.std_err,
            "df": other.df,
            "ci": other.ci95,
            "p_value": other.p_value,
        }
    return answer


def effect_size(case: Case) -> dict[str, Any]:
    found = st.effect_size(table_of(case), case["params"]["a"], case["params"]["b"])
    return {
        "diff": found.difference,
        "sd_total": found.sd_total,
        "d_total": found.d_total,
        "sd_within": found.sd_within,
        "d_within": found.d_within,
    }


def equivalence(case: Case) -> dict[str, Any]:
    params = case["params"]
    found = st.compare(table_of(case), params["a"], params["b"], margin=params["margin"])
    assert found.equivalence is not None
    assert found.non_inferiority is not None
    return {
        "p_equivalence": found.equivalence.p_value,
        "p_lower": found.equivalence.p_lower,
        "p_upper": found.equivalence.p_upper,
        "equivalent": found.equivalence.holds,
        "ci90": found.equivalence.ci90,
        "p_non_inferior": found.non_inferiority.p_value,
    }


def multiplicity(case: Case) -> dict[str, Any]:
    found = st.multiplicity(case["p_values"])
    return {"holm": found.holm, "bh": found.bh, "bonferroni": found.bonferroni}


def ranking(case: Case) -> dict[str, Any]:
    table = table_of(case)
    found, omnibus = st.rank(table), st.friedman(table)
    return {
        "pairs": [f"{one.a}-{one.b}" for one in found.pairs],
        "diffs": [one.difference for one in found.pairs],
        "p_raw": [one.p_value for one in found.pairs],
        "p_holm": [one.p_holm for one in found.pairs],
        "p_bh": [one.p_bh for one in found.pairs],
        "means": {one.candidate: one.mean for one in found.candidates},
        "rank_low": {one.candidate: one.rank_low for one in found.candidates},
        "rank_high": {one.candidate: one.rank_high for one in found.candidates},
        "friedman_chi2": omnibus.chi_square,
        "friedman_p": omnibus.p_value,
    }


def bradley_terry(case: Case) -> dict[str, Any]:
    rows = case["comparisons"]
    found = st.bradley_terry(rows["left"], rows["right"], rows["outcome"], count=rows.get("count"))
    answer: dict[str, Any] = {
        "reason": said(found.reason, found.warnings),
        "separated": list(found.separated),
    }
    for key in case["expected"]:
        if key.startswith(("log_strength_vs_", "se_vs_")):
            base = next(
                item for item in found.items if str(item).lower() == key.rsplit("_", 1)[1].lower()
            )
            field = "difference" if key.startswith("log") else "std_err"
            answer[key] = {
                item: 0.0 if item == base else getattr(found.contrast(item, base), field)
                for item in found.items
            }
    answer["win_prob"] = {
        pair: found.contrast(*pair.split(">")).win_probability
        for pair in case["expected"].get("win_prob", {})
    }
    if "Milwaukee" in found.items:
        answer["win_prob_milwaukee_vs_boston"] = found.contrast(
            "Milwaukee", "Boston"
        ).win_probability
    return answer


def variance(case: Case) -> dict[str, Any]:
    found = st.variance_components(table_of(case), case["params"]["candidate"])
    return {
        "ms_task": found.ms_task,
        "ms_trial": found.ms_trial,
        "var_task": found.var_task,
        "var_trial": found.var_trial,
        "icc1": found.icc1,
        "icc1_ci": found.icc1_ci95,
        "reliability_of_mean_of_3": found.reliability,
        "reason": said(found.reason, found.warnings),
    }


def icc(case: Case) -> dict[str, Any]:
    rows = case["ratings"]
    found = st.icc(rows["unit"], rows["rater"], rows["score"])
    return {
        "ICC(1,1)": found.icc_1,
        "ICC(A,1)": found.icc_a1,
        "ICC(C,1)": found.icc_c1,
        "ICC(1,k)": found.icc_1k,
        "ICC(A,k)": found.icc_ak,
        "ICC(C,k)": found.icc_ck,
    }


def krippendorff_alpha(case: Case) -> dict[str, Any]:
    rows = case["ratings"]
    metrics = [key for key in case["expected"] if key != "reason"]
    found = {
        metric: st.krippendorff_alpha(rows["unit"], rows["score"], metric=metric)
        for metric in metrics
    }
    return {metric: one.alpha for metric, one in found.items()} | {
        "reason": [found[metrics[0]].reason]
    }


def cohen_kappa(case: Case) -> dict[str, Any]:
    rows = case["ratings"]
    ratings = list(zip(rows["unit"], rows["rater"], rows["score"], strict=True))
    of = {
        rater: {u: s for u, r, s in ratings if r == rater} for rater in sorted(set(rows["rater"]))
    }
    one, other = of.values()
    found = st.cohen_kappa([one[unit] for unit in one], [other[unit] for unit in one])
    return {
        "kappa": found.kappa,
        "se": found.std_err,
        "ci": found.ci95,
        "percent_agreement": found.percent_agreement,
        "reason": [found.reason],
    }


def fleiss_kappa(case: Case) -> dict[str, Any]:
    return {"kappa": st.fleiss_kappa(case["counts"]).kappa}


def calibration(case: Case) -> dict[str, Any]:
    found = st.calibration(case["judge"], case["human"], tolerance=0.10)
    return {
        "n": found.n,
        "bias": found.bias,
        "bias_ci": found.bias_ci95,
        "bias_p": found.bias_p,
        "mae": found.mae,
        "rmse": found.rmse,
        "max_error": found.max_error,
        "pass_rate_within_0_10": found.pass_rate,
        "pearson": found.pearson,
        "pearson_ci": found.pearson_ci95,
        "spearman": found.spearman,
        "concordance": found.concordance,
        "limits_of_agreement": found.limits_of_agreement,
        "reason": [found.reason],
    }


def ppi(case: Case) -> dict[str, Any]:
    lam = case["params"].get("lam")
    found = st.ppi(case["human"], case["judge_on_human"], case["judge_unlabelled"], lam=lam)
    return {
        "mean": found.mean,
        "se": found.std_err,
        "df": found.df,
        "ci": found.ci95,
        "humans_only_mean": found.humans_only_mean,
        "judge_only_mean": found.judge_only_mean,
        "rectifier": found.rectifier,
    }


def power(case: Case) -> dict[str, Any]:
    found = st.power(**case["params"])
    return {
        name: getattr(found, name) for name in found.__slots__ if getattr(found, name) is not None
    }


def sequential(case: Case) -> dict[str, Any]:
    found = st.sequential(**case["params"])
    if isinstance(found, st.PlannedLooks):
        return {"obf_nominal_p": found.obf_nominal_p, "pocock_nominal_p": found.pocock_nominal_p}
    return {
        "e_value": found.e_value,
        "anytime_p": found.anytime_p,
        "half_width_over_se": found.half_width_over_se,
        "reason": [found.reason],
    }


def t_quantile(probability: float, df: float) -> float:
    from scipy.stats import t  # type: ignore[import-untyped]  # SciPy ships no types

    return float(t.ppf(probability, df))


QUESTIONS: dict[str, Callable[[Case], dict[str, Any]]] = {
    "mean": mean,
    "mean_binary": mean_binary,
    "diff": difference,
    "diff_one_task": difference,
    "effect_size": effect_size,
    "equivalence": equivalence,
    "multiplicity": multiplicity,
    "ranking": ranking,
    "bradley_terry": bradley_terry,
    "variance": variance,
    "icc": icc,
    "krippendorff_alpha": krippendorff_alpha,
    "cohen_kappa": cohen_kappa,
    "fleiss_kappa": fleiss_kappa,
    "calibration": calibration,
    "ppi": ppi,
    "power": power,
    "sequential": sequential,
}


def assert_agrees(
    expected: object, found: object, *, rel: float, absolute: float, where: str
) -> None:
    match expected:
        case None:
            assert found is None, f"{where}: expected None, found {found}"
        case bool() | str():
            if where.endswith((".reason", ".warning")):
                assert isinstance(found, list)
                assert expected in found, f"{where}: expected {expected}, found {found}"
            else:
                assert found == expected, f"{where}: expected {expected}, found {found}"
        case int() | float():
            assert isinstance(found, (int, float)), f"{where}: expected {expected}, found {found}"
            close = math.isfinite(found) and abs(found - expected) <= absolute + rel * abs(expected)
            assert close, f"{where}: expected {expected}, found {found}"
        case list():
            assert isinstance(found, (list, tuple)), f"{where}: expected {expected}, found {found}"
            assert len(found) == len(expected), f"{where}: expected {expected}, found {found}"
            for place, (one, other) in enumerate(zip(expected, found, strict=True)):
                assert_agrees(one, other, rel=rel, absolute=absolute, where=f"{where}[{place}]")
        case dict():
            assert isinstance(found, dict), f"{where}: expected {expected}, found {found}"
            for key, one in expected.items():
                if key not in COMPARISON_ONLY:
                    assert key in found, f"{where}.{key} is not answered"
                    assert_agrees(
                        one, found[key], rel=rel, absolute=absolute, where=f"{where}.{key}"
                    )
        case _:
            raise AssertionError(f"{where}: unknown kind {expected!r}")


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_a_reference_case_is_met_to_its_tolerance(case: Case) -> None:
    found = QUESTIONS[case["question"]](case)
    tolerance = case["tolerance"]
    assert_agrees(
        case["expected"], found, rel=tolerance["rel"], absolute=tolerance["abs"], where=case["id"]
    )


def test_every_question_of_the_file_has_its_function() -> None:
    assert {case["question"] for case in CASES} == set(QUESTIONS)
