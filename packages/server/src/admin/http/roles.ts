/** What a caller of the HTTP port may do. `admin` includes everything. */
export type AdminRole = 'health' | 'metrics' | 'view' | 'operate' | 'backup' | 'admin'
