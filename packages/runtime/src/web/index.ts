export { webSocketClientNetwork, type WebSocketClass, type WebSocketLike } from './network.ts'
