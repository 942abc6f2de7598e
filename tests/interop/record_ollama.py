# /// script
# dependencies = [
#   "ollama==0.6.3",
# ]
# ///
"""Ollama: the messages of a chat, and its last response, as the Python client's types dump them."""

import json

from conversation import CALLS, INSTRUCTIONS, QUESTION, TOOL, URL, get_order_or_error, write
from ollama import Client, Message

client = Client(host=URL)
messages = [Message(role="system", content=INSTRUCTIONS), Message(role="user", content=QUESTION)]
for _ in range(len(CALLS) + 1):
    response = client.chat(model="qwen3", messages=messages, tools=[TOOL])
    messages.append(response.message)
    for call in response.message.tool_calls or ():
        result = json.dumps(get_order_or_error(**call.function.arguments))
        messages.append(Message(role="tool", tool_name=call.function.name, content=result))
write("ollama.json", {"messages": [message.model_dump(exclude_none=True) for message in messages], "tools": [TOOL]})
