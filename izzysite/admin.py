from django.contrib.admin.apps import AdminConfig


class IzzyAdminConfig(AdminConfig):
    """`django.contrib.admin` with the site of `izzysite.admin_site`."""

    default_site = "izzysite.admin_site.IzzyAdminSite"
