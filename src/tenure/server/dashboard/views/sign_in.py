"""Signing in by an access token, and out."""

from typing import TYPE_CHECKING

from fastapi import APIRouter, Request
from starlette.responses import Response

from tenure.errors import TokenRefused
from tenure.server.dashboard import forms, session
from tenure.server.dashboard.rendering import back, render
from tenure.server.dashboard.session import Sent

if TYPE_CHECKING:
    from tenure.server.auth import TokenCache

router: APIRouter = APIRouter()


@router.get("/sign-in")
async def form(request: Request, to: str = "/") -> Response:
    """Ask for an access token."""
    return render(request, None, "sign-in.html", to=forms.to({"to": to}, "/"), refused="")


@router.post("/sign-in")
async def sign_in(request: Request) -> Response:
    """Take the access token, and lead to where its bearer wanted to go."""
    session.check_same_origin(request)
    fields = await session.read_form(request)
    secret, to = fields.get("token", "").strip(), forms.to(fields, "/")
    keys: TokenCache = request.app.state.keys
    try:
        await keys.find(secret)
    except TokenRefused as error:
        return render(request, None, "sign-in.html", status=401, to=to, refused=str(error))
    answer = back(request, to)
    session.sign_in(request, answer, secret)
    return answer


@router.post("/sign-out")
async def sign_out(request: Request, _fields: Sent) -> Response:
    """Forget the access token in this browser; it stays good elsewhere."""
    answer = back(request, "/sign-in")
    session.sign_out(request, answer)
    return answer
