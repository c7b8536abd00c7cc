"""Made by `python -m tools.package_stubs`."""

from weft.tf1.estimator.modes import *
from weft.tf1.estimator import export as export
from weft.tf1.estimator import inputs as inputs
from weft.tf1.estimator.head import BinaryClassHead as BinaryClassHead
from weft.tf1.estimator.head import Head as Head
from weft.tf1.estimator.head import MultiClassHead as MultiClassHead
from weft.tf1.estimator.head import RegressionHead as RegressionHead
from weft.tf1.estimator.exporter import BestExporter as BestExporter
from weft.tf1.estimator.exporter import Exporter as Exporter
from weft.tf1.estimator.exporter import FinalExporter as FinalExporter
from weft.tf1.estimator.exporter import LatestExporter as LatestExporter
from weft.tf1.estimator.estimator import Estimator as Estimator
from weft.tf1.estimator.estimator import train_and_evaluate as train_and_evaluate
from weft.tf1.estimator.canned import BaselineClassifier as BaselineClassifier
from weft.tf1.estimator.canned import BaselineRegressor as BaselineRegressor
from weft.tf1.estimator.canned import DNNClassifier as DNNClassifier
from weft.tf1.estimator.canned import DNNLinearCombinedClassifier as DNNLinearCombinedClassifier
from weft.tf1.estimator.canned import DNNLinearCombinedRegressor as DNNLinearCombinedRegressor
from weft.tf1.estimator.canned import DNNRegressor as DNNRegressor
from weft.tf1.estimator.canned import LinearClassifier as LinearClassifier
from weft.tf1.estimator.canned import LinearRegressor as LinearRegressor
