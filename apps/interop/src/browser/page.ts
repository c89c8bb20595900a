/// <reference lib="dom" />
/** Runs every client scenario over WebSockets in the page and sends each outcome to the test. */
import { connect } from '@zabra/client/web'
import { scenarios, type ScenarioContext } from '../../../../packages/client/src/testing/scenarios.ts'

const servers = new URLSearchParams(location.search).get('servers') ?? ''

/** Requests an action of the test synchronously, because scenarios expect it to be done on return. */
function requestAction(path: string): void {
  const request = new XMLHttpRequest()
  request.open('POST', path, false)
  request.send()
}

const context: ScenarioContext = {
  shortSession: 2000,
  connect: (options) => connect({ servers, sessionTimeoutMs: 6000, ...options }),
  cut: () => requestAction('/cut'),
  isolate() {
    requestAction('/isolate')
    return () => requestAction('/restore')
  },
  crash: async () => void (await fetch('/crash', { method: 'POST' })),
  pause() {
    requestAction('/pause')
    return () => requestAction('/resume')
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
