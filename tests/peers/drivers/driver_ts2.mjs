// Drives the client of @modelcontextprotocol/client 2.x, in either era. See `plan.py`.

import { drive } from "./plan.mjs";

/** `load` imports a module of the peer's environment. */
export async function main(load) {
  const { Client, ProtocolError, SSEClientTransport, StreamableHTTPClientTransport } = await load(
    "@modelcontextprotocol/client",
  );
  const { StdioClientTransport } = await load("@modelcontextprotocol/client/stdio");
  const { AjvJsonSchemaValidator } = await load("@modelcontextprotocol/client/validators/ajv");

  await drive(async (plan) => {
    const capabilities = plan.canBeAsked ? { elicitation: { form: {}, url: {} } } : {};
    const mode = ["legacy", "auto"].includes(plan.mode) ? plan.mode : { pin: plan.mode };
    const mcp = new Client({ name: "driver", version: "1" }, { capabilities, versionNegotiation: { mode } });
    mcp.onerror = (error) => plan.complained(error);
    mcp.fallbackNotificationHandler = async ({ method }) => plan.notified(method);
    if (plan.canBeAsked)
      mcp.setRequestHandler("elicitation/create", async ({ params }) => {
        const { action, content, error } = await plan.answer(params);
        if (error !== undefined) throw new ProtocolError(error, "planned");
        return { action, content };
      });
    const transport = {
      http: () => new StreamableHTTPClientTransport(plan.url),
      sse: () => new SSEClientTransport(plan.url),
      stdio: () => new StdioClientTransport(plan.child),
    }[plan.transport]();
    await mcp.connect(transport);
    plan.report.revision = mcp.getNegotiatedProtocolVersion();
    const methods = {
      "prompts/list": () => mcp.listPrompts(),
      "prompts/get": (params) => mcp.getPrompt(params),
      "resources/list": () => mcp.listResources(),
      "resources/templates/list": () => mcp.listResourceTemplates(),
      "resources/read": (params) => mcp.readResource(params),
    };
    await plan.run({
      listTools: async () => (await mcp.listTools({}, { cacheMode: "refresh" })).tools,
      callTool: (name, args, onprogress) => mcp.callTool({ name, arguments: args }, { onprogress }),
      request: (method, params) => methods[method](params),
      errorOf: ({ code, message, data }) => (typeof code === "number" ? { code, message, data } : { message }),
      complaintOf: (schema, value) => new AjvJsonSchemaValidator().getValidator(schema)(value).errorMessage,
    });
    if (mcp.getProtocolEra() === "legacy") await transport.terminateSession?.();
    await mcp.close();
  });
}
