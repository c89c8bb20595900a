/** Whether a path belongs to the server (`/zookeeper` and below), which export, import and deletion leave alone. */
export const isReserved = (path: string): boolean => path === '/zookeeper' || path.startsWith('/zookeeper/')
