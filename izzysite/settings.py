"""Izzy's settings. Everything an operator may change is an environment variable; README.md lists them all."""

import secrets
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path

from apps.core.logs import level_number, logging_settings
from izzysite.env import (
    BASE_DIR,
    MAX_DAYS,
    MAX_SECONDS,
    allowed_hosts,
    env_bool,
    env_choice,
    env_database,
    env_files,
    env_hosts,
    env_list,
    env_number,
    env_password,
    env_path,
    env_prices,
    env_redis_url,
    env_secret,
    env_str,
    env_url,
    env_weights,
    fernet_key,
    load_env_file,
)

load_env_file()

# --- Where and who ---------------------------------------------------------------------------------------------

DEBUG = env_bool("IZZY_DEBUG", False)
IZZY_DATA_DIR: Path = env_path("IZZY_DATA_DIR", "data")
IZZY_HOST = env_str("IZZY_HOST", "127.0.0.1")
IZZY_PORT = env_number("IZZY_PORT", 8000, minimum=1, maximum=65_535)
IZZY_PUBLIC_URL = env_str("IZZY_PUBLIC_URL").rstrip("/")
IZZY_BEHIND_PROXY = env_bool("IZZY_BEHIND_PROXY", False)
IZZY_THROTTLE = env_bool("IZZY_THROTTLE", True)
IZZY_PRIVATE_HOSTS = env_list("IZZY_PRIVATE_HOSTS")
IZZY_DB_THREADS = env_number("IZZY_DB_THREADS", 8, minimum=1)
IZZY_WEB_PROCESSES = env_number("IZZY_WEB_PROCESSES", 1, minimum=1)
IZZY_DRAIN_SECONDS = env_number("IZZY_DRAIN_SECONDS", 5, minimum=0, maximum=MAX_SECONDS)
IZZY_UPLOAD_LIMIT = env_number("IZZY_UPLOAD_LIMIT", 5_000_000, minimum=10_000)
IZZY_IMPORT_LIMIT = env_number("IZZY_IMPORT_LIMIT", 200_000_000, minimum=10_000)
IZZY_ATTACHMENT_LIMIT = env_number("IZZY_ATTACHMENT_LIMIT", 10_000_000, minimum=1_000)
IZZY_ATTACHMENT_QUOTA = env_number("IZZY_ATTACHMENT_QUOTA", 500_000_000, minimum=1_000)
SECRET_KEY = env_secret(
    "IZZY_SECRET_KEY", IZZY_DATA_DIR / "secret_key", lambda: secrets.token_urlsafe(48)
)
IZZY_SECRETS_KEY = env_secret("IZZY_SECRETS_KEY", IZZY_DATA_DIR / "secrets_key", fernet_key)
TLS = IZZY_PUBLIC_URL.startswith("https://")
ALLOWED_HOSTS = allowed_hosts(IZZY_HOST, IZZY_PUBLIC_URL, env_hosts("IZZY_ALLOWED_HOSTS"))
CSRF_TRUSTED_ORIGINS = [IZZY_PUBLIC_URL] if IZZY_PUBLIC_URL else []

# --- Apps ------------------------------------------------------------------------------------------------------

INSTALLED_APPS = [
    "unfold.apps.BasicAppConfig",
    "izzysite.admin.IzzyAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_htmx",
    "apps.core",
    "apps.accounts",
    "apps.agent",
    "apps.search",
    "apps.memory",
    "apps.capabilities",
    "apps.builder",
    "apps.chat",
    "apps.gateway",
    "izzysite",
]

MIDDLEWARE = [
    "apps.core.http.middleware.EdgeSecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "izzysite.errors.SlashMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "apps.accounts.access.SignInRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "apps.core.http.middleware.RepeatMiddleware",
]

ROOT_URLCONF = "izzysite.urls"
ASGI_APPLICATION = "izzysite.asgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "izzysite.views.frame",
            ],
        },
    },
]

# --- Database, channels, cache ---------------------------------------------------------------------------------

IZZY_DB_CONNECTIONS = env_number("IZZY_DB_CONNECTIONS", 30, minimum=2)
DATABASES = {
    "default": env_database("DATABASE_URL", IZZY_DATA_DIR / "izzy.sqlite3", IZZY_DB_CONNECTIONS)
}

REDIS_URL = env_redis_url("REDIS_URL")
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [REDIS_URL], "prefix": "izzy"},
    }
    if REDIS_URL
    else {"BACKEND": "channels.layers.InMemoryChannelLayer", "CONFIG": {"capacity": 1000}}
}
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": REDIS_URL,
        "KEY_PREFIX": "izzy",
        # A Redis that does not answer at all must not hold up every request.
        "OPTIONS": {"socket_connect_timeout": 2, "socket_timeout": 2},
    }
    if REDIS_URL
    else {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
}

# --- Accounts and security -------------------------------------------------------------------------------------

AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["apps.accounts.backends.ThrottledBackend"]
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
LOGIN_URL = "accounts:sign_in"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "accounts:sign_in"

SESSION_ENGINE = "apps.accounts.sessions"
SESSION_COOKIE_NAME = "izzy_session"
SESSION_COOKIE_AGE = int(timedelta(days=30).total_seconds())
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = TLS
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_NAME = "izzy_csrftoken"
CSRF_FAILURE_VIEW = "izzysite.errors.csrf_failure"
SECURE_HSTS_SECONDS = int(timedelta(days=365).total_seconds()) if TLS else 0
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin" if TLS else None
X_FRAME_OPTIONS = "DENY"
if IZZY_BEHIND_PROXY:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    USE_X_FORWARDED_HOST = True

DATA_UPLOAD_MAX_MEMORY_SIZE = IZZY_UPLOAD_LIMIT
FILE_UPLOAD_MAX_MEMORY_SIZE = IZZY_UPLOAD_LIMIT

_SELF = "'self'"
IZZY_CSP = {
    "default-src": [_SELF],
    "script-src": [_SELF],
    "style-src": [_SELF],
    "img-src": [_SELF, "data:"],
    "font-src": [_SELF],
    "connect-src": [_SELF],
    "object-src": ["'none'"],
    "base-uri": ["'none'"],
    "form-action": [_SELF],
    "frame-ancestors": ["'none'"],
}
IZZY_CSP_ADMIN = IZZY_CSP | {
    "script-src": [_SELF, "'unsafe-eval'"],
    "style-src": [_SELF, "'unsafe-inline'"],
}

# --- REST ------------------------------------------------------------------------------------------------------

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "apps.accounts.access.TokenAuthentication",
        "apps.accounts.access.BrowserSessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["apps.accounts.access.ScopePermission"],
    "DEFAULT_PARSER_CLASSES": ["apps.core.http.drf.StrictJSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["apps.core.http.drf.ShapeRenderer"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "apps.core.http.drf.AlwaysJSON",
    "DEFAULT_PAGINATION_CLASS": "apps.core.http.drf.Pages",
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_THROTTLE_CLASSES": [
        "apps.core.http.drf.UserThrottle",
        "apps.core.http.drf.ScopeThrottle",
    ],
    "DEFAULT_THROTTLE_RATES": {
        "user": "1200/min",
        "write": "300/min",
        "chat": "60/min",
        "ingest": "300/min",
        "attachments": "60/min",
    },
    "EXCEPTION_HANDLER": "izzysite.errors.exception_handler",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
    "PAGE_SIZE": 50,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Izzy",
    "DESCRIPTION": "A personal assistant that remembers its user. Send `Authorization: Bearer izzy_…`.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SERVE_PERMISSIONS": ["rest_framework.permissions.IsAuthenticated"],
    "SERVE_AUTHENTICATION": None,
    "COMPONENT_SPLIT_REQUEST": True,  # what is sent has bounds that what is answered has not
    "ENUM_NAME_OVERRIDES": {
        "NoteStatusEnum": "apps.memory.models.Status",
        "NoteKindEnum": "apps.memory.models.Kind",
        "BuildKindEnum": "apps.builder.models.Kind",
        "BuildStateEnum": "apps.builder.models.State",
        "TurnStateEnum": "apps.chat.models.TurnStatus",
        "RunStateEnum": "apps.capabilities.models.Execution.State",
        "PurgeStateEnum": "apps.memory.models.deletion.PurgeState",
        "PurgedSourceEnum": "apps.memory.models.deletion.Purged",
        "PurgeOutcomeEnum": ["done", "scheduled"],
        "StepStateEnum": ["ok", "error", "not_run", "open"],
        "OriginEnum": "apps.memory.models.Origin",
        "CapabilityStatusEnum": "apps.capabilities.models.Status",
        "CapabilityOriginEnum": "apps.capabilities.models.Origin",
        "SourceEnum": ["memory", "conversation", "file", "capability"],
    },
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "izzysite.openapi.complete",
    ],
}

# --- Files, time, log ------------------------------------------------------------------------------------------

IZZY_FILES_URL = env_str("IZZY_FILES_URL")
STORAGES = {
    "default": {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {"location": IZZY_DATA_DIR},
    },
    # What all hosts need: the files of capabilities, and those of imports until they have ended.
    "shared": env_files("IZZY_FILES_URL", IZZY_DATA_DIR),
    "staticfiles": {"BACKEND": "izzysite.static_files.VersionedStorage"},
}
STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
USE_TZ = True
TIME_ZONE = "UTC"
USE_I18N = False
LANGUAGE_CODE = "en-us"
FORMAT_MODULE_PATH = ["izzysite.formats"]

_LEVELS = ("debug", "info", "warning", "error")
LOG_LEVEL = env_choice("IZZY_LOG_LEVEL", "info", _LEVELS).upper()
IZZY_LOG_LIBRARIES = env_choice(
    "IZZY_LOG_LIBRARIES", max(LOG_LEVEL, "INFO", key=level_number), _LEVELS
).upper()
IZZY_LOG_FORMAT = env_choice("IZZY_LOG_FORMAT", "text", ("text", "json"))
IZZY_HEARTBEAT_FILE = env_str("IZZY_HEARTBEAT_FILE")
IZZY_METRICS_TOKEN = env_password("IZZY_METRICS_TOKEN")
IZZY_OTEL_ENDPOINT = env_url("IZZY_OTEL_ENDPOINT", env_url("OTEL_EXPORTER_OTLP_ENDPOINT"))
LOGGING = logging_settings(LOG_LEVEL, IZZY_LOG_LIBRARIES, IZZY_LOG_FORMAT)

UNFOLD = {
    "SITE_TITLE": "Izzy",
    "SITE_HEADER": "Izzy",
    "SITE_ICON": f"/{STATIC_URL}img/icon.svg",
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": f"/{STATIC_URL}img/icon.svg"}],
    "SHOW_VIEW_ON_SITE": False,
    "DASHBOARD_CALLBACK": "izzysite.admin_index.dashboard",
    "STYLES": [f"/{STATIC_URL}css/admin.css"],
    "SIDEBAR": {
        "show_search": True,
        "command_search": True,
        "navigation": "izzysite.admin_site.navigation_of",
    },
    # The pages' warm greys and their green (static/css/tokens.css).
    "COLORS": {
        "base": {
            "50": "oklch(98.2% .003 90)",
            "100": "oklch(95.8% .005 90)",
            "200": "oklch(91.5% .008 88)",
            "300": "oklch(85.5% .011 85)",
            "400": "oklch(70% .014 82)",
            "500": "oklch(55% .014 80)",
            "600": "oklch(45% .013 80)",
            "700": "oklch(37% .011 80)",
            "800": "oklch(28% .009 82)",
            "900": "oklch(22% .007 85)",
            "950": "oklch(17% .006 88)",
        },
        "primary": {
            "50": "oklch(97.5% .012 175)",
            "100": "oklch(94.5% .028 175)",
            "200": "oklch(89% .055 175)",
            "300": "oklch(82% .085 175)",
            "400": "oklch(76% .105 177)",
            "500": "oklch(62% .105 178)",
            "600": "oklch(48% .085 178)",
            "700": "oklch(42% .073 178)",
            "800": "oklch(36% .062 178)",
            "900": "oklch(31% .052 178)",
            "950": "oklch(22% .037 178)",
        },
    },
}

# --- The assistant ---------------------------------------------------------------------------------------------

ANTHROPIC_API_KEY = env_str("ANTHROPIC_API_KEY")
ANTHROPIC_BASE_URL = env_url("ANTHROPIC_BASE_URL")
IZZY_PROXY_UPSTREAM = env_url("IZZY_PROXY_UPSTREAM")
IZZY_CHAT_MODEL = env_str("IZZY_CHAT_MODEL", "claude-sonnet-5-5")
IZZY_BUILDER_MODEL = env_str("IZZY_BUILDER_MODEL", IZZY_CHAT_MODEL)
IZZY_EXTRACT_MODEL = env_str("IZZY_EXTRACT_MODEL", IZZY_CHAT_MODEL)
IZZY_FAST_MODEL = env_str("IZZY_FAST_MODEL", "claude-haiku-5-5")
# Dollars per million tokens: input, output, read from the cache, written to it. The longest beginning of a model's
# name that stands here counts; a model that is not listed costs nothing in the usage ledger.
IZZY_MODEL_PRICES = env_prices(
    "IZZY_MODEL_PRICES",
    {
        "claude-sonnet": (3.0, 15.0, 0.30, 3.75),
        "claude-haiku": (1.0, 5.0, 0.10, 1.25),
        "claude-opus": (5.0, 25.0, 0.50, 6.25),
    },
)
IZZY_EMBEDDER = env_str("IZZY_EMBEDDER", "minilm" if find_spec("all_minilm_l6_v2") else "static")
IZZY_CAPABILITY_LIMIT = env_number("IZZY_CAPABILITY_LIMIT", 2_000, minimum=1)
IZZY_EXECUTION_DAYS = env_number("IZZY_EXECUTION_DAYS", 30, minimum=1, maximum=MAX_DAYS)
IZZY_ARCHIVE_DAYS = env_number("IZZY_ARCHIVE_DAYS", 90, minimum=1, maximum=MAX_DAYS)
IZZY_CAPTURE_TOKENS = env_number("IZZY_CAPTURE_TOKENS", 200_000, minimum=1000)
IZZY_CAPTURE_WAIT = env_number("IZZY_CAPTURE_WAIT", 45, minimum=0, maximum=MAX_SECONDS)
IZZY_PURGE_VACUUM_MB = env_number("IZZY_PURGE_VACUUM_MB", 50, minimum=0)
IZZY_INDEX_MEMORY_MB = env_number("IZZY_INDEX_MEMORY_MB", 1024, minimum=16)
# Those that differ from `apps.search.ranking.signals.WEIGHTS`.
IZZY_SEARCH_WEIGHTS = env_weights("IZZY_SEARCH_WEIGHTS")
OLLAMA_URL = env_url("OLLAMA_URL", "http://127.0.0.1:11434")
IZZY_HISTORY_TOKENS = env_number("IZZY_HISTORY_TOKENS", 60_000, minimum=1000)
IZZY_WEB_SEARCH = env_choice("IZZY_WEB_SEARCH", "auto", ("auto", "anthropic", "searxng", "brave", "off"))
SEARXNG_URL = env_url("SEARXNG_URL")
BRAVE_API_KEY = env_str("BRAVE_API_KEY")
IZZY_VISION_MODELS = env_list("IZZY_VISION_MODELS", "claude")
IZZY_MODEL_TIMEOUT = env_number("IZZY_MODEL_TIMEOUT", 600.0, minimum=1.0, maximum=MAX_SECONDS)
IZZY_ANSWER_CHARS = env_number("IZZY_ANSWER_CHARS", 500_000, minimum=1_000)

# --- Capabilities ----------------------------------------------------------------------------------------------

IZZY_SANDBOX = env_choice("IZZY_SANDBOX", "auto", ("auto", "e2b", "bubblewrap", "none"))
IZZY_SANDBOXES = env_number("IZZY_SANDBOXES", 0)
IZZY_SANDBOX_DIR = env_str("IZZY_SANDBOX_DIR")
IZZY_SANDBOX_UID = env_number("IZZY_SANDBOX_UID", 64123, minimum=1, maximum=2**32 - 2)
IZZY_LAYER_MB = env_number("IZZY_LAYER_MB", 1000, minimum=10)
IZZY_LAYER_DAYS = env_number("IZZY_LAYER_DAYS", 30, minimum=1, maximum=MAX_DAYS)
IZZY_PACKAGE_HOSTS = env_list("IZZY_PACKAGE_HOSTS")
E2B_API_KEY = env_str("E2B_API_KEY")

# --- Builds ----------------------------------------------------------------------------------------------------

IZZY_BUILDS = env_number("IZZY_BUILDS", 10, minimum=1)
IZZY_BUILDS_PER_USER = env_number("IZZY_BUILDS_PER_USER", 3, minimum=1)
IZZY_BUILDS_PER_DAY = env_number("IZZY_BUILDS_PER_DAY", 50, minimum=1)
IZZY_BUILD_TOKENS = env_number("IZZY_BUILD_TOKENS", 600_000, minimum=1)
IZZY_BUILD_SECONDS = env_number("IZZY_BUILD_SECONDS", 600.0, minimum=1.0, maximum=MAX_SECONDS)
IZZY_BUILD_TRANSCRIPT_DAYS = env_number("IZZY_BUILD_TRANSCRIPT_DAYS", 90, minimum=1, maximum=MAX_DAYS)
IZZY_BUILD_ANSWER_SECONDS = env_number(
    "IZZY_BUILD_ANSWER_SECONDS", 60.0, minimum=0.0, maximum=MAX_SECONDS
)
