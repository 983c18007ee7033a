"""Pages of the accounts."""

from typing import Any, cast

from django.contrib.auth.views import LogoutView
from django.urls import path

from apps.accounts import views

app_name = "accounts"

# The views take a SignedInRequest, which the middleware guarantees and Django's types cannot know.
page = cast("Any", views)

urlpatterns = [
    path("setup/", views.setup, name="setup"),
    path("sign-in/", views.SignIn.as_view(), name="sign_in"),
    path("sign-out/", LogoutView.as_view(), name="sign_out"),
    path("settings/", page.settings_page, name="settings"),
    path("settings/put-away/<str:name>/", page.put_away, name="put_away"),
    path("settings/password/", page.password, name="password"),
    path("settings/delete/", page.delete, name="delete"),
    path("settings/tokens/", page.tokens, name="tokens"),
    path("settings/tokens/<str:pk>/revoke/", page.revoke, name="token_revoke"),
    path("settings/users/", page.users, name="users"),
    path("settings/users/<str:pk>/password/", page.reset_password, name="user_password"),
    path("settings/users/<str:pk>/active/", page.set_active, name="user_active"),
    path("settings/users/<str:pk>/delete/", page.delete_user, name="user_delete"),
    path("settings/instance/", page.instance, name="instance"),
    path("settings/instance/test/<str:name>/", page.test_connection, name="test_connection"),
]
