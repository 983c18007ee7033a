"""Shapes of the REST interface, for its description."""

from rest_framework import serializers


class UsageTotals(serializers.Serializer[dict[str, object]]):
    calls = serializers.IntegerField()
    failed = serializers.IntegerField()
    input_tokens = serializers.IntegerField(help_text="Neither read from nor written to the cache.")
    output_tokens = serializers.IntegerField()
    cache_read_tokens = serializers.IntegerField()
    cache_write_tokens = serializers.IntegerField()
    cost_usd = serializers.FloatField()


class UsageOfDay(UsageTotals):
    day = serializers.DateField()


class UsageOfPurpose(UsageTotals):
    purpose = serializers.CharField()


class UsageOfModel(UsageTotals):
    model = serializers.CharField()


class UsageOfTool(serializers.Serializer[dict[str, object]]):
    name = serializers.CharField()
    calls = serializers.IntegerField()
    failed = serializers.IntegerField()


class UsageOutput(serializers.Serializer[dict[str, object]]):
    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    total = UsageTotals()
    by_day = UsageOfDay(many=True)
    by_purpose = UsageOfPurpose(many=True)
    by_model = UsageOfModel(many=True)
    tools = UsageOfTool(many=True)
