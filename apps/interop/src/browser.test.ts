import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { resolve } from 'node:path'
import { expect, it } from 'vitest'
import { scenarios } from '../../../packages/client/src/testing/scenarios.ts'
import { bundle } from './browser/bundle.ts'
import { withPage } from './browser/open-page.ts'
import { ScenarioServers } from './client/scenario-servers.ts'
import { describeWith } from './harness/requirements.ts'
import { freePort } from './harness/ports.ts'
import { serverUnderTest, Server } from './harness/servers.ts'

const page = '<!doctype html><meta charset="utf-8"><script type="module" src="/page.js"></script>'

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request) text += String(chunk)
  return text
}

describeWith(['chromium'], 'the client in a browser', () => {
  it('passes every client scenario over WebSockets', async () => {
    const webSocketPort = await freePort()
    await using server = await Server.start({
      kind: serverUnderTest,
      config: { tickTime: 500, webSocketPort },
    })
    const real = await ScenarioServers.behindProxies([server], () => webSocketPort)
    const { context } = real
    const script = await bundle(resolve(import.meta.dirname, 'browser/page.ts'), ['@zabra/source'])
    const outcomes: { name: string; outcome: string }[] = []
    let undo = (): void => {}
    let ended = (): void => {}
    const end = new Promise<void>((done) => (ended = done))
    const actions: Record<string, (body: string) => void | Promise<void>> = {
      '/cut': () => context.cut(),
      '/isolate': () => void (undo = context.isolate()),
      '/restore': () => undo(),
      '/crash': () => context.crash(),
      '/pause': () => void (undo = context.pause()),
      '/resume': () => undo(),
      '/outcome': (body) => void outcomes.push(JSON.parse(body) as { name: string; outcome: string }),
      '/end': () => ended(),
    }
    const respond = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      const path = new URL(request.url ?? '/', 'http://page').pathname
      if (request.method === 'POST') await actions[path]?.(await bodyOf(request))
      const [type, body] =
        path === '/page.js' ? ['text/javascript', script] : ['text/html', path === '/' ? page : '']
      response.writeHead(200, { 'content-type': type }).end(body)
    }
    const web = createServer((request, response) => {
      respond(request, response).catch((error: unknown) => response.writeHead(500).end(String(error)))
    })
    web.listen(0, '127.0.0.1')
    await once(web, 'listening')
    const servers = encodeURIComponent(`ws://${real.addresses[0]}/zabra`)
    try {
      await withPage(`http://127.0.0.1:${(web.address() as AddressInfo).port}/?servers=${servers}`, [], end)
    } finally {
      web.closeAllConnections()
      web.close()
      await real.close()
    }
    expect(outcomes).toEqual(scenarios.map(({ name }) => ({ name, outcome: 'done' })))
  })
})
