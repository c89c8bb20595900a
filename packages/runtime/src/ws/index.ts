export { webSocketNetwork, type WebSocketNetworkOptions } from './network.ts'
export { WebSocketConnection } from './connection.ts'
