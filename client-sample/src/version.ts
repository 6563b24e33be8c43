/** What we tell the server of ourselves, so that it can refuse a client it outgrew. */
export const CLIENT_NAME = "sidestage-web";
export const CLIENT_VERSION = "0.1.0";
export const CLIENT = `${CLIENT_NAME}/${CLIENT_VERSION}`;

/** The schema's version this client was written for; it rises with breaking changes only. */
export const SCHEMA_VERSION = "1";
