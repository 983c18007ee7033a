"""Pages of the accounts."""

from typing import Any, cast

from django.contrib.auth.views import LogoutView
from django.urls import path

from apps.accounts.views import entrance, instance, preferences, tokens, users

app_name = "accounts"

# The views take a SignedInRequest, which the middleware guarantees and Django's types cannot know.
own, token, user, server = (cast("Any", module) for module in (preferences, tokens, users, instance))

urlpatterns = [
    path("setup/", entrance.setup, name="setup"),
    path("sign-in/", entrance.SignIn.as_view(), name="sign_in"),
    path("sign-out/", LogoutView.as_view(), name="sign_out"),
    path("settings/", own.settings_page, name="settings"),
    path("settings/password/", own.password, name="password"),
    path("settings/delete/", own.delete, name="delete"),
    path("settings/tokens/", token.tokens, name="tokens"),
    path("settings/tokens/<str:pk>/revoke/", token.revoke, name="token_revoke"),
    path("settings/users/", user.users, name="users"),
    path("settings/users/<str:pk>/password/", user.reset_password, name="user_password"),
    path("settings/users/<str:pk>/active/", user.set_active, name="user_active"),
    path("settings/users/<str:pk>/delete/", user.delete_user, name="user_delete"),
    path("settings/instance/", server.instance, name="instance"),
    path("settings/instance/test/<str:name>/", server.test_connection, name="test_connection"),
]
