import { connectToParent } from '@zabra/runtime/node/children'
import { TestServer } from './ensemble/test-server.ts'
import type { ChildCommand, ChildEvent } from './ensemble/child-server.ts'

/** How often the role and the serving state are polled for changes, in milliseconds. */
const LOOK_MS = 10

let server: TestServer | undefined
let told = ''
const parent = connectToParent((message) => void obey(message as ChildCommand).catch(complain))
const tell = (report: ChildEvent): void => parent.send(report)

async function obey(order: ChildCommand): Promise<void> {
  if (order.do === 'start') {
    server = new TestServer(order.options)
    await server.start()
    look()
    tell({ is: 'started', address: server.address })
    setInterval(look, LOOK_MS)
  } else if (order.do === 'cut') server?.blockPorts(order.ports)
  else {
    await server?.close()
    process.exit()
  }
}

function look(): void {
  if (server?.isRunning !== true) return
  const { role, isServing } = server
  if (told === `${role} ${isServing}`) return
  told = `${role} ${isServing}`
  tell({ is: 'acting', role: role!, isServing })
}

function complain(error: unknown): void {
  console.error(error instanceof Error ? error.stack : error)
  process.exit(1)
}
