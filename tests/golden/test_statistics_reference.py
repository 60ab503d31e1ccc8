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
    estimate = st.estimate(table_of(case), case["params"]["candidate"], case["params"].get("scope"))
    answer = {
        "mean": estimate.mean,
        "sd": estimate.sd,
        "se": estimate.std_err,
        "n_trials": estimate.n_trials,
        "n_tasks": estimate.n_tasks,
        "n_eff": estimate.n_eff,
        "df": estimate.df,
        "ci": estimate.ci95,
        "ci_method": estimate.method,
        "scope": estimate.scope,
        "reason": said(estimate.reason, estimate.warnings),
        "warning": [one.code for one in estimate.warnings],
    }
    if estimate.df is not None and estimate.std_err is not None and estimate.mean is not None:
        half = t_quantile(0.975, estimate.df) * estimate.std_err
        answer["ci_t"] = (estimate.mean - half, estimate.mean + half)
    return answer


def mean_binary(case: Case) -> dict[str, Any]:
    table = table_of(case)
    estimate = st.estimate(table, case["params"]["candidate"])
    share = st.proportion(int(table.score.sum()), table.score.size)
    assert share.ci95 == pytest.approx(estimate.ci95)
    return {
        "mean": estimate.mean,
        "n_trials": estimate.n_trials,
        "ci": estimate.ci95,
        "ci_wilson": share.wilson,
        "ci_clopper_pearson": share.clopper_pearson,
        "ci_jeffreys": share.jeffreys,
        "ci_agresti_coull": share.agresti_coull,
    }


def difference(case: Case) -> dict[str, Any]:
    params = case["params"]
    table = table_of(case)
    comparison = st.compare(table, params["a"], params["b"], params.get("scope"))
    effects, opinion, other = comparison.effects, comparison.second_opinion, comparison.other_scope
    differences = np.array([one.difference for one in comparison.by_task])
    answer: dict[str, Any] = {
        "diff": comparison.difference,
        "se": comparison.std_err,
        "df": comparison.df,
        "t": comparison.t,
        "p_value": comparison.p_value,
        "p_method": comparison.method,
        "ci": comparison.ci95,
        "n_tasks": comparison.n_tasks,
        "n_eff": comparison.n_eff,
        "scope": comparison.scope,
        "tasks_won": comparison.tasks_won,
        "tasks_lost": comparison.tasks_lost,
        "tasks_tied": comparison.tasks_tied,
        "task_diffs": differences.tolist(),
        "prob_superiority": comparison.prob_superiority,
        "reason": said(comparison.reason, comparison.warnings),
        "warning": [one.code for one in comparison.warnings],
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
    result = st.effect_size(table_of(case), case["params"]["a"], case["params"]["b"])
    return {
        "diff": result.difference,
        "sd_total": result.sd_total,
        "d_total": result.d_total,
        "sd_within": result.sd_within,
        "d_within": result.d_within,
    }


def equivalence(case: Case) -> dict[str, Any]:
    params = case["params"]
    comparison = st.compare(table_of(case), params["a"], params["b"], margin=params["margin"])
    assert comparison.equivalence is not None
    assert comparison.non_inferiority is not None
    return {
        "p_equivalence": comparison.equivalence.p_value,
        "p_lower": comparison.equivalence.p_lower,
        "p_upper": comparison.equivalence.p_upper,
        "equivalent": comparison.equivalence.holds,
        "ci90": comparison.equivalence.ci90,
        "p_non_inferior": comparison.non_inferiority.p_value,
    }


def multiplicity(case: Case) -> dict[str, Any]:
    result = st.multiplicity(case["p_values"])
    return {"holm": result.holm, "bh": result.bh, "bonferroni": result.bonferroni}


def ranking(case: Case) -> dict[str, Any]:
    table = table_of(case)
    result, omnibus = st.rank(table), st.friedman(table)
    return {
        "pairs": [f"{one.a}-{one.b}" for one in result.pairs],
        "diffs": [one.difference for one in result.pairs],
        "p_raw": [one.p_value for one in result.pairs],
        "p_holm": [one.p_holm for one in result.pairs],
        "p_bh": [one.p_bh for one in result.pairs],
        "means": {one.candidate: one.mean for one in result.candidates},
        "rank_low": {one.candidate: one.rank_low for one in result.candidates},
        "rank_high": {one.candidate: one.rank_high for one in result.candidates},
        "friedman_chi2": omnibus.chi_square,
        "friedman_p": omnibus.p_value,
    }


def bradley_terry(case: Case) -> dict[str, Any]:
    rows = case["comparisons"]
    result = st.bradley_terry(rows["left"], rows["right"], rows["outcome"], count=rows.get("count"))
    answer: dict[str, Any] = {
        "reason": said(result.reason, result.warnings),
        "separated": list(result.separated),
    }
    for key in case["expected"]:
        if key.startswith(("log_strength_vs_", "se_vs_")):
            base = next(
                item for item in result.items if str(item).lower() == key.rsplit("_", 1)[1].lower()
            )
            field = "difference" if key.startswith("log") else "std_err"
            answer[key] = {
                item: 0.0 if item == base else getattr(result.contrast(item, base), field)
                for item in result.items
            }
    answer["win_prob"] = {
        pair: result.contrast(*pair.split(">")).win_probability
        for pair in case["expected"].get("win_prob", {})
    }
    if "Milwaukee" in result.items:
        answer["win_prob_milwaukee_vs_boston"] = result.contrast(
            "Milwaukee", "Boston"
        ).win_probability
    return answer


def variance(case: Case) -> dict[str, Any]:
    result = st.variance_components(table_of(case), case["params"]["candidate"])
    return {
        "ms_task": result.ms_task,
        "ms_trial": result.ms_trial,
        "var_task": result.var_task,
        "var_trial": result.var_trial,
        "icc1": result.icc1,
        "icc1_ci": result.icc1_ci95,
        "reliability_of_mean_of_3": result.reliability,
        "reason": said(result.reason, result.warnings),
    }


def icc(case: Case) -> dict[str, Any]:
    rows = case["ratings"]
    result = st.icc(rows["unit"], rows["rater"], rows["score"])
    return {
        "ICC(1,1)": result.icc_1,
        "ICC(A,1)": result.icc_a1,
        "ICC(C,1)": result.icc_c1,
        "ICC(1,k)": result.icc_1k,
        "ICC(A,k)": result.icc_ak,
        "ICC(C,k)": result.icc_ck,
    }


def krippendorff_alpha(case: Case) -> dict[str, Any]:
    rows = case["ratings"]
    metrics = [key for key in case["expected"] if key != "reason"]
    by_name = {
        metric: st.krippendorff_alpha(rows["unit"], rows["score"], metric=metric)
        for metric in metrics
    }
    return {metric: one.alpha for metric, one in by_name.items()} | {
        "reason": [by_name[metrics[0]].reason]
    }


def cohen_kappa(case: Case) -> dict[str, Any]:
    rows = case["ratings"]
    ratings = list(zip(rows["unit"], rows["rater"], rows["score"], strict=True))
    of = {
        rater: {u: s for u, r, s in ratings if r == rater} for rater in sorted(set(rows["rater"]))
    }
    one, other = of.values()
    result = st.cohen_kappa([one[unit] for unit in one], [other[unit] for unit in one])
    return {
        "kappa": result.kappa,
        "se": result.std_err,
        "ci": result.ci95,
        "percent_agreement": result.percent_agreement,
        "reason": [result.reason],
    }


def fleiss_kappa(case: Case) -> dict[str, Any]:
    return {"kappa": st.fleiss_kappa(case["counts"]).kappa}


def calibration(case: Case) -> dict[str, Any]:
    result = st.calibration(case["judge"], case["human"], tolerance=0.10)
    return {
        "n": result.n,
        "bias": result.bias,
        "bias_ci": result.bias_ci95,
        "bias_p": result.bias_p,
        "mae": result.mae,
        "rmse": result.rmse,
        "max_error": result.max_error,
        "pass_rate_within_0_10": result.pass_rate,
        "pearson": result.pearson,
        "pearson_ci": result.pearson_ci95,
        "spearman": result.spearman,
        "concordance": result.concordance,
        "limits_of_agreement": result.limits_of_agreement,
        "reason": [result.reason],
    }


def ppi(case: Case) -> dict[str, Any]:
    lam = case["params"].get("lam")
    result = st.ppi(case["human"], case["judge_on_human"], case["judge_unlabelled"], lam=lam)
    return {
        "mean": result.mean,
        "se": result.std_err,
        "df": result.df,
        "ci": result.ci95,
        "humans_only_mean": result.humans_only_mean,
        "judge_only_mean": result.judge_only_mean,
        "rectifier": result.rectifier,
    }


def power(case: Case) -> dict[str, Any]:
    result = st.power(**case["params"])
    return {
        name: getattr(result, name)
        for name in result.__slots__
        if getattr(result, name) is not None
    }


def sequential(case: Case) -> dict[str, Any]:
    result = st.sequential(**case["params"])
    if isinstance(result, st.PlannedLooks):
        return {"obf_nominal_p": result.obf_nominal_p, "pocock_nominal_p": result.pocock_nominal_p}
    return {
        "e_value": result.e_value,
        "anytime_p": result.anytime_p,
        "half_width_over_se": result.half_width_over_se,
        "reason": [result.reason],
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
    result = QUESTIONS[case["question"]](case)
    tolerance = case["tolerance"]
    assert_agrees(
        case["expected"], result, rel=tolerance["rel"], absolute=tolerance["abs"], where=case["id"]
    )


def test_every_question_of_the_file_has_its_function() -> None:
    assert {case["question"] for case in CASES} == set(QUESTIONS)
