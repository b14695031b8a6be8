// The server of the matrix, written with mcp-use 2.x: what asks returns `inputRequired`.

/** `load` imports a module of the environment; `port` is where to serve. */
export async function main(load, port) {
  const { MCPServer, inputRequired, inputResponse } = await load("mcp-use");
  const { z } = await load("zod");

  const server = new MCPServer({ name: "matrix", version: "1" });
  const said = (text) => ({ content: [{ type: "text", text }] });
  const ask = (key, message, requestedSchema, requestState) =>
    inputRequired({ inputRequests: { [key]: inputRequired.elicit({ message, requestedSchema }) }, requestState });

  server.tool(
    { name: "add", description: "Add two numbers.", inputSchema: z.object({ a: z.int(), b: z.int() }) },
    async ({ a, b }) => said(String(a + b)),
  );
  server.tool(
    {
      name: "ask_once",
      description: "Close something. Asks the user first.",
      inputSchema: z.object({ what: z.string() }),
    },
    async ({ what }, ctx) => {
      const answer = inputResponse(ctx.inputResponses, "confirm");
      if (answer.kind !== "elicit") return ask("confirm", `Close ${what}?`, z.object({ confirm: z.boolean() }));
      return said(answer.action === "accept" && answer.content.confirm ? `closed ${what}` : `kept ${what}`);
    },
  );
  server.tool(
    {
      name: "ask_twice",
      description: "Order something. Asks for a name, then how many go to that name.",
      inputSchema: z.object({ what: z.string() }),
    },
    async ({ what }, ctx) => {
      const name = inputResponse(ctx.inputResponses, "name");
      const count = inputResponse(ctx.inputResponses, "count");
      if (count.kind === "elicit" && count.action === "accept")
        return said(`${count.content.count} ${what} for ${ctx.requestState()}`);
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
  server.tool(
    { name: "count_up", description: "Count, and report each step.", inputSchema: z.object({ steps: z.int() }) },
    async ({ steps }, ctx) => {
      for (let step = 1; step <= steps; step++) await ctx.reportProgress(step, steps, `step ${step}`);
      return said(`counted to ${steps}`);
    },
  );
  server.resource({ name: "note", uri: "matrix://note", description: "A note." }, async () => ({
    contents: [{ uri: "matrix://note", text: "noted" }],
  }));
  server.prompt({ name: "greet", description: "A greeting." }, async () => ({
    messages: [{ role: "user", content: { type: "text", text: "Greet the user." } }],
  }));

  await server.listen(port, { host: "127.0.0.1" });
}
