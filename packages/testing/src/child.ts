import { connectToParent } from '@zabra/runtime/node/children'
import { TestServer } from './ensemble/test-server.ts'
import type { ChildCommand, ChildEvent } from './ensemble/child-server.ts'

/** How often the role and the serving state are polled for changes, in milliseconds. */
const POLL_MS = 10

let server: TestServer | undefined
let reported = ''
const parent = connectToParent((message) => void handle(message as ChildCommand).catch(fail))
const send = (report: ChildEvent): void => parent.send(report)

async function handle(order: ChildCommand): Promise<void> {
  if (order.do === 'start') {
    server = new TestServer(order.options)
    await server.start()
    poll()
    send({ is: 'started', address: server.address })
    setInterval(poll, POLL_MS)
  } else if (order.do === 'cut') server?.blockPorts(order.ports)
  else {
    await server?.close()
    process.exit()
  }
}

function poll(): void {
  if (server?.isRunning !== true) return
  const { role, isServing } = server
  if (reported === `${role} ${isServing}`) return
  reported = `${role} ${isServing}`
  send({ is: 'acting', role: role!, isServing })
}

function fail(error: unknown): void {
  console.error(error instanceof Error ? error.stack : error)
  process.exit(1)
}
