// Drives the client of @modelcontextprotocol/sdk 1.x, which knows legacy revisions only. See `plan.py`.

import { drive } from "./plan.mjs";

/** `load` imports a module of the peer's environment. */
export async function main(load) {
  const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
  const { StreamableHTTPClientTransport } = await load("@modelcontextprotocol/sdk/client/streamableHttp.js");
  const { SSEClientTransport } = await load("@modelcontextprotocol/sdk/client/sse.js");
  const { StdioClientTransport } = await load("@modelcontextprotocol/sdk/client/stdio.js");
  const { ElicitRequestSchema, McpError } = await load("@modelcontextprotocol/sdk/types.js");
  const { AjvJsonSchemaValidator } = await load("@modelcontextprotocol/sdk/validation/ajv");

  await drive(async (plan) => {
    const capabilities = plan.canBeAsked ? { elicitation: { form: {}, url: {} } } : {};
    const mcp = new Client({ name: "driver", version: "1" }, { capabilities });
    mcp.onerror = (error) => plan.complained(error);
    mcp.fallbackNotificationHandler = async ({ method }) => plan.notified(method);
    if (plan.canBeAsked)
      mcp.setRequestHandler(ElicitRequestSchema, async ({ params }) => {
        const { action, content, error } = await plan.answer(params);
        if (error !== undefined) throw new McpError(error, "planned");
        return { action, content };
      });
    const transport = {
      http: () => new StreamableHTTPClientTransport(plan.url),
      sse: () => new SSEClientTransport(plan.url),
      stdio: () => new StdioClientTransport(plan.child),
    }[plan.transport]();
    await mcp.connect(transport);
    // That of HTTP+SSE does not say it aloud.
    plan.report.revision = transport.protocolVersion ?? transport._protocolVersion;
    const methods = {
      "prompts/list": () => mcp.listPrompts(),
      "prompts/get": (params) => mcp.getPrompt(params),
      "resources/list": () => mcp.listResources(),
      "resources/templates/list": () => mcp.listResourceTemplates(),
      "resources/read": (params) => mcp.readResource(params),
    };
    await plan.run({
      listTools: async () => (await mcp.listTools()).tools,
      callTool: (name, args, onprogress) => mcp.callTool({ name, arguments: args }, undefined, { onprogress }),
      request: (method, params) => methods[method](params),
      errorOf: ({ code, message, data }) => (typeof code === "number" ? { code, message, data } : { message }),
      complaintOf: (schema, value) => new AjvJsonSchemaValidator().getValidator(schema)(value).errorMessage,
    });
    await transport.terminateSession?.();
    // Over HTTP+SSE a result may come before the 202 to its POST, which closing then aborts.
    mcp.onerror = () => {};
    await mcp.close();
  });
}
