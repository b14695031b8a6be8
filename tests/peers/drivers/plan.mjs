// What the drivers in JavaScript share. The same as `plan.py`, line by line where it can be: see there.

import { once } from "node:events";
import { createInterface } from "node:readline";

const FALLBACK_TOOL = "sendElicitationResult";

/** What to do, and what came of it. */
export class Plan {
  #steps;
  #expected;
  #callSeconds;
  #open = [];
  #mayGo = new Map();
  #wakes = new EventTarget();

  constructor(plan) {
    this.url = plan.url === null ? null : new URL(plan.url);
    this.child = plan.child;
    this.transport = plan.transport ?? (plan.child === null ? "http" : "stdio");
    this.mode = plan.mode;
    this.canBeAsked = plan.can_be_asked;
    this.report = { tools: [], calls: [], notifications: [], tools_afterwards: [], errors: [] };
    this.#steps = plan.steps;
    this.#expected = plan.expected_notifications;
    this.#callSeconds = plan.call_seconds;
  }

  /**
   * Make the planned calls, those of one step at once.
   *
   * `sdk` has `listTools()`, `callTool(name, arguments, onprogress)`, `request(method, params)` and `errorOf(error)` as in
   * `plan.py`, and `complaintOf(schema, value)`: why a value does not fit a JSON Schema, or undefined.
   */
  async run(sdk) {
    this.report.tools = await sdk.listTools();
    for (const step of this.#steps) {
      this.#open = step.map((planned) => new Call(planned));
      this.report.calls.push(...this.#open.map((call) => call.report));
      await Promise.all(this.#open.map((call) => this.#make(call, sdk)));
    }
    while (!this.#expected.every((method) => this.report.notifications.includes(method)))
      await once(this.#wakes, "notified");
    this.report.tools_afterwards = await sdk.listTools();
  }

  /** Be the user: what is planned for this question, once it may go out. Either `action` or `error` is in it. */
  async answer({ message, requestedSchema = null, url = null, elicitId = null }) {
    const call = this.#open.find(({ answers }) => answers.length > 0 && message.includes(answers[0].about));
    if (call === undefined) {
      this.report.errors.push(`no answer was planned for: ${message}`);
      return { action: "cancel" };
    }
    call.report.questions.push({ message, requestedSchema, url, by: elicitId === null ? "form" : "chat" });
    const answer = call.answers.shift();
    const mayGo = answer.wait ? this.#gate(answer.wait).opened : undefined;
    say({ asked: { message, elicitId, url } });
    await mayGo;
    return answer;
  }

  /** Let an answer go out. */
  release(wait) {
    this.#gate(wait).open();
  }

  /** Note a notification of the server's. */
  notified(method) {
    this.report.notifications.push(method);
    this.#wakes.dispatchEvent(new Event("notified"));
  }

  /** Note an error that belongs to no call. A stream that was cut is none: the SDK comes back by itself. */
  complained(error) {
    if (!error.message.includes("SSE stream disconnected")) this.report.errors.push(String(error));
  }

  async #make(call, sdk) {
    let timer;
    const timeout = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error("TimeoutError")), this.#callSeconds * 1000);
    });
    try {
      call.report.result = await Promise.race([this.#finish(call, sdk), timeout]);
    } catch (error) {
      call.report.error = sdk.errorOf(error);
    } finally {
      clearTimeout(timer);
    }
    say({ ended: { name: call.name, arguments: call.arguments } });
  }

  async #finish(call, sdk) {
    const moved = call.steps > 0 ? ({ progress }) => call.report.progress.push(progress) : undefined;
    let result = await (call.isMethod ? sdk.request : sdk.callTool)(call.name, call.arguments, moved);
    let pending = pendingIn(result);
    while (pending !== undefined) {
      result = await this.#passOn(call, pending, sdk);
      pending = pendingIn(result) ?? (call.wasRefused(result) ? pending : undefined);
    }
    return result;
  }

  /** Be the model: ask in the chat, and call the fallback tool. */
  async #passOn(call, pending, sdk) {
    const [asked] = pending.questions ?? [pending]; // of several, one at a time
    const { action, content, times } = await this.answer({ ...asked, requestedSchema: asked.schema });
    const given = { elicitId: asked.elicitId, action, ...(content === undefined ? {} : { content }) };
    const passOn = () => sdk.callTool(FALLBACK_TOOL, given);
    const [result, ...again] = await Promise.all(Array.from({ length: times }, passOn));
    call.report.again.push(...again);
    if (!result.isError) {
      // The SDK checks results against the schema of the tool it called; a model's host, of the one that asked.
      const { outputSchema } = this.report.tools.find((tool) => tool.name === call.name);
      const complaint = sdk.complaintOf(outputSchema ?? {}, result.structuredContent);
      if (complaint !== undefined) throw new Error(complaint);
    }
    return result;
  }

  #gate(name) {
    if (!this.#mayGo.has(name)) {
      const gate = {};
      gate.opened = new Promise((resolve) => {
        gate.open = resolve;
      });
      this.#mayGo.set(name, gate);
    }
    return this.#mayGo.get(name);
  }
}

/** A planned call and what came of it. */
class Call {
  constructor(planned) {
    this.name = planned.name;
    this.arguments = planned.arguments;
    this.answers = planned.answers;
    this.steps = planned.steps ?? 0;
    this.report = { name: this.name, questions: [], refusals: [], again: [], progress: [], result: null, error: null };
  }

  get isMethod() {
    return this.name.includes("/");
  }

  wasRefused(result) {
    if (!result.isError || this.answers.length === 0) return false;
    this.report.refusals.push(result.content[0].text);
    return true;
  }
}

function pendingIn(result) {
  return result._meta?.elicitationPending;
}

function say(line) {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

/** Read the plan, follow it, and print the report; likewise with the next one, while more follow. */
export async function drive(converse) {
  const told = createInterface({ input: process.stdin });
  let plan;
  for await (const line of told) {
    if (plan !== undefined) {
      plan.release(line.trim());
      continue;
    }
    const planned = JSON.parse(line);
    plan = new Plan(planned);
    const followed = planned.more_follow ? within(planned.seconds, converse(plan)) : converse(plan);
    const over = followed.then(() => ({ report: plan.report }));
    (planned.more_follow ? over.catch((error) => ({ failed: String(error) })) : over).then((said) => {
      plan = undefined;
      if (!planned.more_follow) process.stdin.destroy();
      say(said);
    });
  }
}

async function within(seconds, promise) {
  let timer;
  const timeout = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error("TimeoutError")), seconds * 1000);
  });
  return Promise.race([promise, timeout]).finally(() => clearTimeout(timer));
}
