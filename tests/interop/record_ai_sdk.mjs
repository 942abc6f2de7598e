// npm: ai@7.0.173 zod@4.1.12
// AI SDK: the messages of a run for a model, and the same conversation as the messages of a page.
import { writeFileSync } from "node:fs";
import { generateText, readUIMessageStream, stepCountIs, streamText, tool } from "ai";
import * as fakes from "ai/test";
import { z } from "zod";

const question = "Where are my orders A-1001 and A-2002?";
const answer = "Order A-1001 was shipped with Northmail; there is no order A-2002.";
const calls = ["A-1001", "A-2002"];
const usage = { inputTokens: { total: 90 }, outputTokens: { total: 9 }, totalTokens: 99 };

function say(turn) {
  const content = turn < calls.length
    ? { type: "tool-call", toolCallId: `call_${turn + 1}`, toolName: "get_order", input: JSON.stringify({ order_id: calls[turn] }) }
    : { type: "text", text: answer };
  const reason = turn < calls.length ? "tool-calls" : "stop";
  return { content, finishReason: { unified: reason, raw: reason } };
}

function stream(turn) {
  const { content, finishReason } = say(turn);
  const said = content.type === "text"
    ? [{ type: "text-start", id: "1" }, { type: "text-delta", id: "1", delta: content.text }, { type: "text-end", id: "1" }]
    : [content];
  return [{ type: "stream-start", warnings: [] }, ...said, { type: "finish", finishReason, usage }];
}

let turn = 0;
let streamed = 0;
const Model = fakes.MockLanguageModelV4 ?? fakes.MockLanguageModelV3;
const model = new Model({
  doGenerate: async () => {
    const { content, finishReason } = say(turn++);
    return { content: [content], finishReason, usage, warnings: [] };
  },
  doStream: async () => ({ stream: fakes.simulateReadableStream({ chunks: stream(streamed++) }) }),
});
const tools = {
  get_order: tool({
    description: "Return the state of an order.",
    inputSchema: z.object({ order_id: z.string() }),
    execute: async ({ order_id }) => {
      if (order_id !== "A-1001") throw new Error(`there is no order ${order_id}`);
      return { status: "shipped", carrier: "Northmail" };
    },
  }),
};
const write = (name, value) => writeFileSync(`${process.env.INTEROP_OUT}/${name}`, JSON.stringify(value, null, 1));

const messages = [{ role: "user", content: question }];
const result = await generateText({ model, tools, messages, stopWhen: stepCountIs(5) });
write("ai_sdk_messages.json", [...messages, ...result.responseMessages]);

const page = streamText({ model, tools, messages, stopWhen: stepCountIs(5) });
let reply;
for await (const message of readUIMessageStream({ stream: page.toUIMessageStream() })) reply = message;
write("ai_sdk_ui_messages.json", [{ id: "1", role: "user", parts: [{ type: "text", text: question }] }, { ...reply, id: "2" }]);
