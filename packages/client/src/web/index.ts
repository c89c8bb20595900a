/** The client for browsers and other platforms with nothing but a WebSocket. Addresses are `ws://` or `wss://`. */
import { webSocketClientNetwork } from '@zabra/runtime/web'
import { openClient, type ConnectOptions } from '../connect.ts'
import { digestMd5With, type DigestMd5Login, type DigestMd5Options } from '../sasl.ts'
import type { Client } from '../client-api.ts'
import type { Transport } from '../platform.ts'
import { webPlatform } from './platform.ts'

// What every platform has; its names are listed in core.ts.
export * from '../core.ts'

/** SASL DIGEST-MD5 for the option `sasl`: `digestMd5({ username, password })`. */
export const digestMd5 = (options: DigestMd5Options): DigestMd5Login =>
  digestMd5With(webPlatform.random)(options)

/**
 * Opens a session and resolves when the server has granted it; see `connectWith`. It has no `batchReads`, for the sake of small
 * pages.
 */
export function connect(options: Omit<ConnectOptions, 'batchReads'>): Promise<Client> {
  const network = webSocketClientNetwork()
  const transport: Transport = {
    schemes: ['ws', 'wss'],
    open: (server, signal) => network.connect(server, { signal }),
  }
  return openClient(options, {
    transport,
    platform: webPlatform,
    warn: (message) => console.warn(message),
  })
}
