"""Pages of the gateway: the calls of programs that wait for a yes."""

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from apps.accounts.access import SignedInRequest
from apps.core.errors import Conflict, NotFound
from apps.core.http.clients import base_url_of
from apps.gateway.mcp.admission import resource_metadata
from apps.gateway.mcp.approvals import ALWAYS, NO, ONCE, call_decide, calls_waiting


@login_not_required
@require_GET
def metadata(request: HttpRequest) -> JsonResponse:
    """Protected resource metadata of /mcp (RFC 9728), for anybody."""
    return JsonResponse(resource_metadata(base_url_of(request)))


@never_cache
@require_GET
def calls(request: SignedInRequest) -> HttpResponse:
    """The calls that wait."""
    context = {"nav": "capabilities", "tab": "calls", "calls": calls_waiting(request.user.pk)}
    return render(request, "gateway/calls.html", context)


@require_POST
def decide(request: SignedInRequest, call_id: str) -> HttpResponse:
    """A yes or no to one of them; back to the others."""
    decision = request.POST.get("decision", "")
    if decision not in (ONCE, ALWAYS, NO):
        raise Http404
    try:
        call_decide(user_id=request.user.pk, call_id=call_id, decision=decision)
    except NotFound as error:
        raise Http404 from error
    except Conflict as error:  # another page was quicker
        messages.error(request, error.message)
    return redirect("gateway:calls")
