"""All addresses: pages at the root, REST under /api/v1/, the admin, and the health probes outside both."""

from django.contrib import admin
from django.contrib.auth.decorators import login_not_required
from django.templatetags.static import static
from django.urls import include, path
from django.views.generic import RedirectView

from izzysite.app import manifest, offline, service_worker
from izzysite.views import SchemaView, SwaggerView, healthz, metrics, readyz

api_urlpatterns = [
    path("", include("apps.accounts.api")),
    path("", include("apps.agent.api_urls")),
    path("", include("apps.memory.api_urls")),
    path("", include("apps.capabilities.api.views")),
    path("", include("apps.builder.api")),
    path("", include("apps.chat.api_urls")),
    path("", include("apps.gateway.api_urls")),
]

urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("metrics", metrics, name="metrics"),
    # Browsers ask for this one by themselves, on pages that are not ours too (admin, API docs).
    path("favicon.ico", login_not_required(RedirectView.as_view(url=static("img/icon.svg")))),
    path("manifest.webmanifest", manifest, name="manifest"),
    path("service-worker.js", service_worker, name="service-worker"),
    path("offline/", offline, name="offline"),
    path("admin/", admin.site.urls),
    path("api/schema/", SchemaView.as_view(), name="schema"),
    path("api/docs/", SwaggerView.as_view(url_name="schema"), name="docs"),
    path("api/v1/", include(api_urlpatterns)),
    path("", include("apps.accounts.urls")),
    path("", include("apps.agent.urls")),
    path("", include("apps.memory.urls")),
    path("", include("apps.capabilities.urls")),
    path("", include("apps.builder.urls")),
    path("", include("apps.chat.urls")),
    path("", include("apps.gateway.urls")),
]

handler400 = "izzysite.errors.bad_request"
handler403 = "izzysite.errors.permission_denied"
handler404 = "izzysite.errors.not_found"
handler500 = "izzysite.errors.server_error"
