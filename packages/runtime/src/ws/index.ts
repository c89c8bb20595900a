export { webSocketNetwork, type WebSocketNetworkOptions } from './network.ts'
