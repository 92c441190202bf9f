"""Hyperparameter search by Optuna: trials are runs, judged on dev, with equal budgets for every objective."""

from oneofmany.tuning.budget import budget_of, with_budget
from oneofmany.tuning.page import write_page
from oneofmany.tuning.space import Space, read_space
from oneofmany.tuning.studies import Search, Tuner

__all__ = ["Search", "Space", "Tuner", "budget_of", "read_space", "with_budget", "write_page"]
