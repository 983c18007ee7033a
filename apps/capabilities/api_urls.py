from django.urls import path

from . import api, api_runs

ONE = "capabilities/<str:capability>/"

urlpatterns = [
    path("capabilities/", api.CapabilitiesView.as_view(), name="capabilities"),
    path(ONE, api.OneCapabilityView.as_view(), name="capability"),
    path(f"{ONE}run/", api_runs.RunView.as_view(), name="capability-run"),
    path(f"{ONE}enable/", api.EnableView.as_view(), name="capability-enable"),
    path(f"{ONE}disable/", api.DisableView.as_view(), name="capability-disable"),
    path(f"{ONE}approve/", api.ApproveView.as_view(), name="capability-approve"),
    path(f"{ONE}rollback/", api.RollbackView.as_view(), name="capability-rollback"),
    path(f"{ONE}executions/", api_runs.ExecutionsView.as_view(), name="capability-executions"),
    path(f"{ONE}zip/", api_runs.ArchiveView.as_view(), name="capability-zip"),
]
