// Vercel's AI SDK: the messages of the model (`response.messages`) and those of the UI, of one scripted agent.
// node vercel.mjs URL OUT, with `ai`, `@ai-sdk/openai` and `zod` installed; vercel_keep.py makes fixtures of its output.
import { createOpenAI } from '@ai-sdk/openai';
import { convertToModelMessages, dynamicTool, generateText, readUIMessageStream, stepCountIs, streamText, tool } from 'ai';
import { readFileSync, writeFileSync } from 'node:fs';
import { z } from 'zod';

const [url, out] = process.argv.slice(2);
const openai = createOpenAI({ baseURL: `${url}/v1`, apiKey: 'x' });
const { questions, results, png, system } = JSON.parse(readFileSync(0, 'utf-8'));
const tools = {
  get_weather: tool({
    description: 'The weather in a city.',
    inputSchema: z.object({ city: z.string() }),
    execute: async ({ city }) => {
      if (city !== 'Oslo') throw new Error(results[1]);
      return results[0];
    },
  }),
  write_note: dynamicTool({
    description: 'Writes a note.',
    inputSchema: z.object({ text: z.string() }),
    execute: async () => results[2],
  }),
};
const model = openai.chat('gpt-4.1-mini');
const ask = question => [
  { type: 'text', text: question },
  ...(question.startsWith('Write') ? [{ type: 'file', mediaType: 'image/png', url: `data:image/png;base64,${png}` }] : []),
];

const messages = [];
for (const question of questions) {
  const content = ask(question).map(part => (part.type === 'file' ? { type: 'image', image: part.url } : part));
  messages.push({ role: 'user', content });
  const result = await generateText({ model, system, messages, tools, stopWhen: stepCountIs(4) });
  messages.push(...result.response.messages);
}

const ui = [];
for (const question of questions) {
  ui.push({ id: `u${ui.length}`, role: 'user', parts: ask(question) });
  const result = streamText({ model, system, messages: await convertToModelMessages(ui), tools, stopWhen: stepCountIs(4) });
  let last;
  for await (const message of readUIMessageStream({ stream: result.toUIMessageStream() })) last = message;
  if (last) ui.push(last);
}
writeFileSync(out, JSON.stringify({ messages, ui }));
