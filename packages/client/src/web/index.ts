/** The client in browsers and wherever there is a WebSocket and nothing else. Addresses are `ws://` or `wss://`. */
import { webSocketClientNetwork } from '@zabra/runtime/web'
import { connectWith, type ConnectOptions } from '../connect.ts'
import { digestMd5With } from '../sasl.ts'
import type { Client } from '../types.ts'
import { networkTransport } from '../transport.ts'
import { webPlatform } from './platform.ts'

export * from '../core.ts'

/** A login by SASL for the option `sasl`: `digestMd5({ username, password })`. */
export const digestMd5 = digestMd5With(webPlatform.random)

/** Opens a session and resolves when it exists; see `connectWith`. */
export function connect(options: ConnectOptions): Promise<Client> {
  const network = webSocketClientNetwork()
  return connectWith(options, {
    transport: networkTransport({ ws: network, wss: network }),
    platform: webPlatform,
  })
}
