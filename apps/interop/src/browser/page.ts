/// <reference lib="dom" />
/** What runs in the page: every scenario, over WebSockets, with its outcome sent to the test. */
import { connect } from '@zabra/client/web'
import { scenarios, type ScenarioContext } from '../../../../packages/client/src/testing/scenarios.ts'

const servers = new URLSearchParams(location.search).get('servers') ?? ''

/** Has the test do something, and waits for it without giving up the turn, as the scenarios expect. */
function order(what: string): void {
  const request = new XMLHttpRequest()
  request.open('POST', what, false)
  request.send()
}

const context: ScenarioContext = {
  shortSession: 2000,
  connect: (options) => connect({ servers, sessionTimeout: 6000, ...options }),
  cut: () => order('/cut'),
  isolate() {
    order('/isolate')
    return () => order('/restore')
  },
  crash: async () => void (await fetch('/crash', { method: 'POST' })),
  pause() {
    order('/pause')
    return () => order('/resume')
  },
}

for (const { name, run } of scenarios) {
  let outcome = 'done'
  try {
    await run(context)
  } catch (error) {
    outcome = error instanceof Error ? `${error.name}: ${error.message}\n${error.stack ?? ''}` : String(error)
  }
  await fetch('/outcome', { method: 'POST', body: JSON.stringify({ name, outcome }) })
}
await fetch('/end', { method: 'POST' })
