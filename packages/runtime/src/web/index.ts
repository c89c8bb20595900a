export { webSocketClientNetwork, type WebSocketConstructor, type WebSocketLike } from './network.ts'
