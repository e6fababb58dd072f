"""Small templates in the style of known families, our own."""

CHATML = """\
{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}
        {{- messages[0].content + '\\n\\n' }}
    {%- endif %}
    {{- '# Tools\\n<tools>' }}
    {%- for tool in tools %}
        {{- '\\n' }}{{- tool | tojson }}
    {%- endfor %}
    {{- '\\n</tools><|im_end|>\\n' }}
{%- elif messages[0].role == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- else %}
    {{- '<|im_start|>system\\nYou are Ember, a careful assistant.<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.content is string %}
        {%- set content = message.content %}
    {%- else %}
        {%- set content = message.content | map(attribute='text') | join('') %}
    {%- endif %}
    {%- if message.role == 'tool' %}
        {{- '<|im_start|>user\\n<tool_response>\\n' + content + '\\n</tool_response><|im_end|>\\n' }}
    {%- elif message.role != 'system' or not loop.first %}
        {{- '<|im_start|>' + message.role + '\\n' }}
        {%- if message.reasoning_content %}
            {{- '<think>\\n' + message.reasoning_content + '\\n</think>\\n\\n' }}
        {%- endif %}
        {{- content }}
        {%- for call in message.tool_calls or [] %}
            {{- '\\n<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' }}
            {{- call.function.arguments | tojson }}{{- '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and not enable_thinking %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}"""

DATED = """\
{{- bos_token }}
{%- if date_string is not defined %}
    {%- if strftime_now is defined %}
        {%- set date_string = strftime_now('%d %b %Y') %}
    {%- else %}
        {%- set date_string = '26 Jul 2024' %}
    {%- endif %}
{%- endif %}
{{- '<|start_header_id|>system<|end_header_id|>\\n\\nToday Date: ' + date_string + '\\n\\n' }}
{%- if messages[0].role == 'system' %}{{ messages[0].content | trim }}{% endif %}
{{- '<|eot_id|>' }}
{%- for message in messages if message.role != 'system' %}
    {{- '<|start_header_id|>' + message.role + '<|end_header_id|>\\n\\n' }}
    {%- if message.tool_calls %}
        {%- for call in message.tool_calls %}
            {{- call.function | tojson }}
        {%- endfor %}
    {%- else %}
        {{- message.content | trim if message.content is string else message.content }}
    {%- endif %}
    {{- '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""

INST = """\
{%- set system = messages[0].content if messages[0].role == 'system' else '' -%}
{{ bos_token }}
{%- for message in messages %}
    {%- if message.role == 'user' %}
        {%- if tools and loop.last %}[AVAILABLE_TOOLS] {{ tools | tojson }}[/AVAILABLE_TOOLS]{% endif %}
        {{- '[INST] ' + (system + '\\n\\n' if system and loop.index <= 2 else '') }}
        {{- message.content }}[/INST]
    {%- elif message.tool_calls %}
        {%- for call in message.tool_calls %}
            {{- '[TOOL_CALLS] ' }}
            {{- {'name': call.function.name, 'arguments': call.function.arguments} | tojson }}
            {{- ' ' ~ call.id }}
        {%- endfor %}{{ eos_token }}
    {%- elif message.role == 'tool' %}
        {{- '[TOOL_RESULTS] ' ~ message.tool_call_id ~ ' ' ~ message.content ~ '[/TOOL_RESULTS]' }}
    {%- elif message.role == 'assistant' %}
        {{- ' ' ~ message.content ~ eos_token }}
    {%- endif %}
{%- endfor %}"""

TOOLLESS = """\
{% for message in messages %}
    {% if loop.first and message['role'] != 'system' %}
{{ '<|im_start|>system\\nYou are a small model.<|im_end|>\\n' }}
    {% endif %}
{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}
{% endfor %}
{% if add_generation_prompt %}
{{ '<|im_start|>assistant\\n' }}
{% endif %}
"""

HARMONY = """\
<|start|>developer<|message|>
{%- if messages[0].role == 'system' %}{{ '# Instructions\\n\\n' + messages[0].content + '\\n\\n' }}{% endif %}
{%- if tools %}
    {{- '# Tools\\n\\n' }}
    {%- for tool in tools %}{{ tool.function.name + ': ' + tool.function | tojson }}{% endfor %}
{%- endif %}<|end|>
{%- for message in messages if message.role != 'system' %}
    {{- '<|start|>' ~ message.role ~ '<|message|>' ~ message.content ~ '<|end|>' }}
{%- endfor %}
{%- if add_generation_prompt %}<|start|>assistant{% endif %}"""

SOURCES = {"chatml": CHATML, "dated": DATED, "inst": INST, "toolless": TOOLLESS, "harmony": HARMONY}
