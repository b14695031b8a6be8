// The server of the matrix, written with @modelcontextprotocol/server 2.x: what asks returns `inputRequired`.
// It serves both eras, the legacy one without sessions, which is what its handler does by default.

import { createServer } from "node:http";

/** `load` imports a module of the environment; `port` is where to serve. */
export async function main(load, port) {
  const { McpServer, createMcpHandler, inputRequired, inputResponse } = await load("@modelcontextprotocol/server");
  const { toNodeHandler } = await load("@modelcontextprotocol/node");
  const { z } = await load("zod");

  const said = (text) => ({ content: [{ type: "text", text }] });
  const ask = (key, message, requestedSchema, requestState) =>
    inputRequired({ inputRequests: { [key]: inputRequired.elicit({ message, requestedSchema }) }, requestState });

  const make = () => {
    const server = new McpServer({ name: "matrix", version: "1" });
    server.registerTool(
      "add",
      { description: "Add two numbers.", inputSchema: z.object({ a: z.int(), b: z.int() }) },
      async ({ a, b }) => said(String(a + b)),
    );
    server.registerTool(
      "ask_once",
      { description: "Close something. Asks the user first.", inputSchema: z.object({ what: z.string() }) },
      async ({ what }, ctx) => {
        const answer = inputResponse(ctx.mcpReq.inputResponses, "confirm");
        if (answer.kind !== "elicit") return ask("confirm", `Close ${what}?`, z.object({ confirm: z.boolean() }));
        return said(answer.action === "accept" && answer.content.confirm ? `closed ${what}` : `kept ${what}`);
      },
    );
    server.registerTool(
      "ask_twice",
      {
        description: "Order something. Asks for a name, then how many go to that name.",
        inputSchema: z.object({ what: z.string() }),
      },
      async ({ what }, ctx) => {
        const name = inputResponse(ctx.mcpReq.inputResponses, "name");
        const count = inputResponse(ctx.mcpReq.inputResponses, "count");
        if (count.kind === "elicit" && count.action === "accept")
          return said(`${count.content.count} ${what} for ${ctx.mcpReq.requestState()}`);
        if (name.kind === "elicit" && name.action === "accept")
          return ask(
            "count",
            `How many ${what} for ${name.content.name}?`,
            z.object({ count: z.int() }),
            name.content.name,
          );
        if (name.kind === "elicit" || count.kind === "elicit") return said(`no ${what}`);
        return ask("name", `Who orders ${what}?`, z.object({ name: z.string() }));
      },
    );
    server.registerTool(
      "count_up",
      { description: "Count, and report each step.", inputSchema: z.object({ steps: z.int() }) },
      async ({ steps }, ctx) => {
        const { progressToken } = ctx.mcpReq._meta ?? {};
        for (let step = 1; step <= steps && progressToken !== undefined; step++)
          await ctx.mcpReq.notify({
            method: "notifications/progress",
            params: { progressToken, progress: step, total: steps, message: `step ${step}` },
          });
        return said(`counted to ${steps}`);
      },
    );
    server.registerResource("note", "matrix://note", { description: "A note." }, async ({ href }) => ({
      contents: [{ uri: href, text: "noted" }],
    }));
    server.registerPrompt("greet", { description: "A greeting." }, async () => ({
      messages: [{ role: "user", content: { type: "text", text: "Greet the user." } }],
    }));
    return server;
  };

  createServer(toNodeHandler(createMcpHandler(make))).listen(port, "127.0.0.1");
}
