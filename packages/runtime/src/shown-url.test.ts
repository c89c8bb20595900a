import { expect, it } from 'vitest'
import { ManualClock } from './manual-clock.ts'
import { shownUrl, type Address } from './network.ts'
import { webSocketClientNetwork } from './web/network.ts'
import { webSocketNetwork } from './ws/network.ts'

/** Port 1 of the loopback: no server listens there. */
const to: Address = { host: '127.0.0.1', port: 1, url: 'ws://alice:s3cret@127.0.0.1:1/zabra?token=t0ken' }

it.each([
  [
    'a page',
    webSocketClientNetwork({
      WebSocket: class {
        binaryType = ''
        bufferedAmount = 0
        readyState = 0
        send(): void {}
        close(): void {}
        addEventListener(type: string, listener: (event: object) => void): void {
          if (type === 'error') queueMicrotask(() => listener({}))
        }
      },
    }),
  ],
  ['a process', webSocketNetwork({ clock: new ManualClock() })],
])('the error of a WebSocket of %s names no user, password or query of its URL', async (_where, network) => {
  const error: unknown = await network.connect(to).catch((reason: unknown) => reason)
  expect(String(error)).toContain('Cannot connect to ws://127.0.0.1:1/zabra (ECONNREFUSED)')
})

it.each([
  ['wss://zk.example.com/zabra', 'wss://zk.example.com/zabra'],
  ['wss://alice:s3cret@zk.example.com', 'wss://zk.example.com'],
  ['ws://[::1]:8080/a//b@c?x=//y@z', 'ws://[::1]:8080/a//b@c'],
  ['ws://a?user@b', 'ws://a'],
])('%s is shown as %s', (url, shown) => {
  expect(shownUrl(url)).toBe(shown)
})
