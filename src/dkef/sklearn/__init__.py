"""The models with scikit-learn's conventions: fit, score_samples, score, sample, get_params."""

from dkef.sklearn.estimators import DKEF, KCEF, KEF, MADE, MADEMOG, MAF, MAFMOG, Gaussian, RealNVP

__all__ = ["DKEF", "KCEF", "KEF", "MADE", "MADEMOG", "MAF", "MAFMOG", "Gaussian", "RealNVP"]
