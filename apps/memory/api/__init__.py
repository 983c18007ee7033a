"""REST of the memory, by topic. `serializers` describe what it takes and gives, `inputs` read it, `output` builds it."""
