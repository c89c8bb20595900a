/** What a tool needs to read and write the files of a server. Neither TLS nor HTTP is loaded for it. */
export { nodeCompression } from './compression.ts'
export { NodeDisk } from './disk.ts'
export { nodeSystem } from './system.ts'
